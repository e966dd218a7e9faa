// One take: the video beside the exact rendering, whether it obeyed, its recipe, and what can be done with it.

import { h, plain } from '../ui/dom.js';
import { button, choice, section } from '../ui/fields.js';
import { dialog } from '../ui/dialog.js';
import { attempt, notice } from '../ui/notices.js';
import { api } from '../state/api.js';
import { openedProject, variedProject } from '../state/project.js';
import { stepPicture } from '../panels/film.js';
import { downloadsOf } from './downloads.js';
import { players } from './players.js';
import { verdictOf } from './verdict.js';

const STATES = { queued: 'waits', working: 'being filmed', finished: 'done', failed: 'failed', cancelled: 'cancelled' };

/** A take's whole page; `alone` is false where several stand side by side. */
export function detailOf(studio, take, alone) {
  const videos = [
    ['video', take.kind === 'film' ? 'Filmed' : 'Video'],
    ['exact', 'Exact rendering'],
    ['beside', 'The source, and what was made of it'],
  ]
    .filter(([name]) => take.files?.[name])
    .map(([name, words]) => [api.file(take.take, take.files[name]), words]);
  return h(
    'article',
    { class: 'take-detail', 'aria-label': titleOf(take) },
    h('header', {}, h('h3', {}, titleOf(take)), h('span', { class: `state ${take.state}` }, STATES[take.state])),
    take.failure && h('p', { class: 'problem' }, take.failure),
    videos.length ? players(videos) : progressOf(studio, take),
    verdictOf(take, { brief: !alone }),
    scoresOf(take),
    take.notes?.length
      ? h(
          'ul',
          { class: 'notes' },
          take.notes.map((note) => h('li', {}, note)),
        )
      : null,
    take.state === 'finished' ? actionsOf(studio, take) : null,
    section('Recipe', recipeOf(take)),
    take.state === 'finished' && alone ? section('Keep', downloadsOf(studio, take)) : null,
  );
}

export const titleOf = (take) =>
  take.title || take.asked?.prompt || { score: 'A score', transfer: 'A transfer' }[take.kind] || 'A take';

function progressOf(studio, take) {
  if (!['queued', 'working'].includes(take.state)) return null;
  const step = studio.takes.steps.get(take.take);
  const words =
    take.state === 'queued'
      ? `Place ${take.place ?? '?'} in the queue`
      : `${take.doing || 'starting'}${take.steps ? `, step ${take.step ?? 0} of ${take.steps}` : ''}`;
  const left = take.left === null || take.left === undefined ? '' : `, ${plain(take.left, 0)} s left`;
  return h(
    'div',
    { class: 'under-way' },
    step ? stepPicture(step) : h('div', { class: 'step-picture empty' }),
    h('p', { role: 'status' }, words + left),
    step?.frames === 1 &&
      h('p', { class: 'help' }, 'Of a large model only the first frame is shown until the video is there.'),
    take.steps ? h('progress', { max: take.steps, value: take.step ?? 0, 'aria-label': 'Progress' }) : null,
    button('Cancel', () => attempt(() => api.removeTake(take.take)), { key: `cancel detail ${take.take}` }),
  );
}

function scoresOf(take) {
  if (!take.scores?.length) return null;
  const rows = take.scores.map(({ metric, value, unit, better }) =>
    h(
      'tr',
      {},
      h('th', { scope: 'row' }, metric),
      h('td', {}, plain(value, 3)),
      h('td', {}, unit ?? ''),
      h('td', { class: 'help' }, better ? `${better} is better` : ''),
    ),
  );
  return h('table', { class: 'scores' }, h('tbody', {}, rows));
}

function recipeOf(take) {
  const { asked = {} } = take;
  const path = asked.path ?? {};
  const moves =
    take.moves ?? path.moves ?? (path.keys ? `${path.keys.length} keyframes` : path.upload ? 'a camera file' : null);
  const rows = [
    ['Prompt', asked.prompt],
    ['Move', moves],
    ['Lens', take.lens ?? lensWords(path.lens)],
    ['Seed', asked.seed],
    ['Steps', take.steps || asked.steps],
    ['Model', asked.model],
    ['Adapter', asked.adapter ?? 'the model’s own'],
    ['Distances', asked.scene ? 'of the blocks' : asked.map ? 'of a map' : null],
    ['Made', take.made && new Date(take.made).toLocaleString()],
    ['Took', take.seconds?.all && `${plain(take.seconds.all, 1)} s`],
  ].filter(([, value]) => value !== null && value !== undefined && value !== '');
  return h(
    'dl',
    { class: 'facts' },
    rows.map(([name, value]) => [h('dt', {}, name), h('dd', {}, String(value))]),
  );
}

const lensWords = (lens) => lens && (lens.name ?? `${plain(lens.hfov, 1)}°, bend ${plain(lens.xi)}`);

function actionsOf(studio, take) {
  const film = take.kind === 'film';
  return h('div', { class: 'row wrap' }, [
    film &&
      take.asked?.project &&
      button('Reopen', () => reopen(studio, take), {
        key: `reopen ${take.take}`,
        title: 'Bring back the project as it was when this was filmed',
      }),
    film &&
      button('Another seed', () => again(studio, take, { seed: (take.asked.seed ?? 0) + 1 }), {
        key: `seed ${take.take}`,
      }),
    film && button('Another lens …', () => againWith(studio, take, 'lens'), { key: `lens ${take.take}` }),
    film && button('Another method …', () => againWith(studio, take, 'adapter'), { key: `method ${take.take}` }),
    button('Remove', () => remove(studio, take), { look: 'quiet', key: `remove ${take.take}` }),
  ]);
}

function reopen(studio, take) {
  return attempt(() => {
    studio.store.edit((project) => Object.assign(project, openedProject(take.asked.project, studio.start)));
    studio.showCentre('shot');
    notice('The take’s project is open again. Undo brings back yours.');
  });
}

/** Film the same take with something else, beside it; the project goes along, so that the new take can be reopened too. */
async function again(studio, take, change) {
  const { lens } = change;
  const body = { ...change, ...(lens ? { lens: { name: lens.name } } : {}) };
  const made = await attempt(async () => {
    const { project } = (await api.take(take.take)).asked; // which lists and events leave out
    return api.again(take.take, [{ ...body, project: project ? variedProject(project, change) : null }]);
  });
  if (!made) return;
  for (const each of made.takes) studio.takes.put(each);
  studio.room.compare([take.take, ...made.takes.map((each) => each.take)]);
}

/** Ask for the other lens or method, then film the same take with it, side by side. */
async function againWith(studio, take, what) {
  const { start } = studio;
  const lenses = start.lenses.map(({ name }) => [name, name]);
  const methods = start.adapters
    .filter(({ models }) => !models || models.includes(take.asked.model))
    .map(({ name, about }) => [name, `${name}: ${about}`]);
  const choices = what === 'lens' ? lenses : methods;
  let chosen = choices[0][0];
  const field = choice(
    what === 'lens' ? 'Lens' : 'Adapter',
    () => choices,
    () => chosen,
    (value) => (chosen = value),
    { key: 'again choice' },
  );
  const answer = await dialog(
    what === 'lens' ? 'The same take through another lens' : 'The same take with another method',
    field.element,
    [
      ['Cancel', null, ''],
      ['Film it', () => chosen, 'primary'],
    ],
  );
  const lensNamed = (name) => start.lenses.find((lens) => lens.name === name);
  const pick = ({ name, hfov, xi }) => ({ name, hfov, xi });
  if (answer) await again(studio, take, what === 'lens' ? { lens: pick(lensNamed(answer)) } : { adapter: answer });
}

async function remove(studio, take) {
  const sure = await dialog('Remove this take?', h('p', {}, 'Its video and all that belongs to it are deleted.'), [
    ['Keep it', null, ''],
    ['Remove', true, 'danger'],
  ]);
  if (!sure) return;
  await attempt(() => api.removeTake(take.take));
  studio.takes.drop(take.take);
}
