// The takes: a strip of thumbnails, and one take, or several side by side.

import { h, refill, withNextFrame } from '../ui/dom.js';
import { button } from '../ui/fields.js';
import { api } from '../state/api.js';
import { stepPicture } from '../panels/film.js';
import { detailOf, titleOf } from './detail.js';
import { badge } from './verdict.js';

const MOST = 3; // side by side

export class Room {
  constructor(studio) {
    Object.assign(this, { studio, chosen: [], shown: new Map() });
    this.list = h('ol', { class: 'take-list' });
    this.older = button('Older takes', () => studio.takes.older(), { look: 'quiet' });
    this.none = h(
      'div',
      { class: 'nothing' },
      h('p', {}, 'Nothing filmed yet.'),
      button('Film this shot', () => studio.panels.film.shoot(), { look: 'primary', glyph: 'film' }),
    );
    this.detail = h('div', { class: 'take-details' });
    this.element = h(
      'section',
      { class: 'room', 'aria-label': 'Takes' },
      h('nav', { 'aria-label': 'All takes' }, this.list, this.older),
      this.detail,
    );
    studio.takes.addEventListener('change', () => this.ask());
  }

  watch(take) {
    this.chosen = [take];
    this.studio.showCentre('takes');
    this.ask();
  }

  compare(takes) {
    this.chosen = takes.slice(0, MOST);
    this.studio.showCentre('takes');
    this.ask();
  }

  /** A click shows one take; with Shift, Ctrl or its box, several side by side. */
  choose(take, together) {
    const others = this.chosen.filter((each) => each !== take);
    if (!together) this.chosen = [take];
    else this.chosen = others.length < this.chosen.length ? others : [...others, take].slice(-MOST);
    this.ask();
  }

  ask = withNextFrame(() => this.update());

  update() {
    const { takes } = this.studio;
    this.chosen = this.chosen.filter((name) => takes.get(name));
    if (!this.chosen.length && takes.list.length) this.chosen = [takes.list[0].take];
    this.older.hidden = !takes.more;
    this.element.classList.toggle('bare', !takes.list.length);
    refill(
      this.list,
      takes.list.map((take) => this.item(take)),
    );
    const wanted = this.chosen.map((name) => this.wholeOf(name));
    this.detail.dataset.count = wanted.length;
    if (this.seen !== String(this.chosen)) this.detail.scrollTop = 0;
    this.seen = String(this.chosen);
    const alone = wanted.length === 1;
    const kept = new Map();
    for (const take of wanted) {
      // Made anew only when something about the take has changed, so that videos go on playing.
      const mark = JSON.stringify([
        take.state,
        take.step,
        take.place,
        take.files,
        take.verdict?.words,
        Boolean(take.verdict?.recovered),
        Boolean(take.asked?.project),
        take.notes,
        alone,
        takes.steps.get(take.take)?.step,
      ]);
      const before = this.shown.get(take.take);
      kept.set(take.take, before?.mark === mark ? before : { mark, element: detailOf(this.studio, take, alone) });
    }
    const elements = [...kept.values()].map(({ element }) => element);
    const same =
      elements.length === this.detail.children.length &&
      elements.every((element, i) => element === this.detail.children[i]);
    if (!same || !wanted.length) refill(this.detail, wanted.length ? elements : [this.none]);
    this.shown = kept;
  }

  /** A finished take with its project and its paths, once they are here; until then what the list knows. */
  wholeOf(name) {
    const { takes } = this.studio;
    const brief = takes.get(name);
    return (brief.state === 'finished' && takes.inWhole(name)) || brief;
  }

  item(take) {
    const step = this.studio.takes.steps.get(take.take);
    const picture = take.files?.thumbnail
      ? h('img', { src: api.file(take.take, take.files.thumbnail), alt: '' })
      : step
        ? stepPicture(step)
        : h('div', { class: 'step-picture empty' });
    const chosen = this.chosen.includes(take.take);
    const title = titleOf(take);
    return h(
      'li',
      { class: chosen ? 'chosen' : '' },
      h(
        'button',
        {
          type: 'button',
          class: 'thumb',
          'aria-current': chosen ? 'true' : null,
          'data-key': `take ${take.take}`,
          onclick: (event) => this.choose(take.take, event.shiftKey || event.ctrlKey || event.metaKey),
        },
        picture,
        h(
          'span',
          { class: 'thumb-words' },
          h('strong', {}, title),
          h(
            'span',
            {},
            [take.lens, take.kind === 'film' ? `seed\u00a0${take.asked?.seed ?? 0}` : take.kind].filter(Boolean).join(' · '),
          ),
          take.verdict ? badge(take.verdict) : h('span', { class: 'help' }, take.state),
        ),
      ),
      h(
        'label',
        { class: 'beside' },
        h('input', {
          type: 'checkbox',
          'data-key': `beside ${take.take}`,
          ...(chosen ? { checked: true } : {}),
          onchange: () => this.choose(take.take, true),
        }),
        h('span', {}, 'compare'),
      ),
    );
  }
}
