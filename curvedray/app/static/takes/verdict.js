// Whether the camera was obeyed: a sentence, the numbers behind it, and the two paths on one scale.

import { h, plain } from '../ui/dom.js';
import { placesOf, planOf } from '../stage/plan.js';

const SAID = { true: ['obeyed', 'Obeyed'], false: ['disobeyed', 'Not obeyed'], null: ['unsure', 'Cannot tell'] };

export function badge(verdict) {
  const [look, words] = SAID[String(verdict.obeyed ?? null)];
  return h('span', { class: `badge ${look}` }, words);
}

/** The verdict of a finished take; while it is being found, that is said. */
export function verdictOf(take, { brief = false } = {}) {
  const { verdict } = take;
  if (!verdict) {
    const waits = take.kind === 'film' && take.state === 'working' && take.files?.video;
    return waits ? h('p', { class: 'help' }, 'The video is there; its camera is being recovered …') : null;
  }
  const numbers = [
    ['Turned', verdict.turned, verdict.asked_turn, '°'],
    ['Went', verdict.went, verdict.asked_way, 'near distances'],
  ].filter(([, got]) => got !== null && got !== undefined);
  const rows = numbers.map(([words, got, asked, unit]) => [
    h('dt', {}, words),
    h('dd', {}, `${plain(got, unit === '°' ? 1 : 2)} of ${plain(asked, unit === '°' ? 1 : 2)} ${unit}`),
  ]);
  if (verdict.degrees !== null && verdict.degrees !== undefined)
    rows.push([h('dt', {}, 'Off per frame'), h('dd', {}, `${plain(verdict.degrees, 1)}°`)]);
  if (verdict.way_off !== null && verdict.way_off !== undefined)
    rows.push([h('dt', {}, 'Way off by'), h('dd', {}, `${plain(verdict.way_off, 1)}°`)]);
  const plans =
    verdict.requested && verdict.recovered
      ? planOf(
          [
            { points: placesOf(verdict.requested), look: 'asked' },
            { points: placesOf(verdict.recovered), look: 'found' },
          ],
          { label: 'The path asked for and the path recovered' },
        )
      : null;
  const legend =
    plans &&
    h(
      'p',
      { class: 'legend' },
      h('span', { class: 'swatch asked' }),
      'asked for',
      h('span', { class: 'swatch found' }),
      'recovered from the video',
    );
  const floor =
    !brief && verdict.floor && h('p', { class: 'help' }, `Recovered by ${verdict.estimator}. ${verdict.floor}`);
  return h(
    'div',
    { class: 'verdict' },
    h('p', { class: 'verdict-words' }, badge(verdict), h('span', {}, verdict.words)),
    h(
      'div',
      { class: 'verdict-body' },
      plans && h('div', {}, plans, legend),
      h('div', { class: 'stack' }, h('dl', { class: 'facts' }, rows), floor),
    ),
  );
}
