// Film: what to ask the model for, and what it is doing.

import { h, plain, refill } from '../ui/dom.js';
import { button, choice, columns, number, section, words } from '../ui/fields.js';
import { attempt, notice } from '../ui/notices.js';
import { api } from '../state/api.js';
import { filmBody } from '../state/project.js';

export class FilmPanel {
  constructor(studio) {
    this.studio = studio;
    this.build();
    studio.takes.addEventListener('change', () => this.drawQueue());
  }

  get film() {
    return this.studio.store.project.film;
  }

  get model() {
    return this.studio.start.models.find(({ name }) => name === this.studio.store.project.model);
  }

  set(changes, kind = `film ${Object.keys(changes)}`) {
    this.studio.store.edit((project) => Object.assign(project.film, changes), kind);
  }

  build() {
    const { studio } = this;
    const { start, store } = studio;
    const usual = (name) => plain(this.model[name] ?? 0);
    this.prompt = words(
      'Prompt',
      () => this.film.prompt,
      (prompt) => this.set({ prompt }),
      { lines: 3, spell: true, key: 'prompt' },
    );
    this.known = h('div', { class: 'known' });
    this.seed = number(
      'Seed',
      () => this.film.seed,
      (seed) => this.set({ seed: Math.round(seed) }),
      { min: 0, step: 1, digits: 0 },
    );
    this.numbers = [
      this.seed,
      number(
        'Steps',
        () => this.film.steps,
        (steps) => this.set({ steps: steps && Math.round(steps) }),
        { min: 1, max: 200, step: 1, digits: 0, empty: usual('steps') },
      ),
      number(
        'Text guidance',
        () => this.film.guidance,
        (guidance) => this.set({ guidance }),
        { min: 0, max: 30, step: 0.5, empty: usual('guidance') },
      ),
      number(
        'Camera guidance',
        () => this.film.camera_guidance,
        (camera_guidance) => this.set({ camera_guidance }),
        { min: 0, max: 30, step: 0.5, empty: usual('camera_guidance') },
      ),
    ];
    this.models = choice(
      'Model',
      () => start.models.map(({ name }) => [name, name]),
      () => store.project.model,
      (name) => this.useModel(name),
    );
    const adapters = () => [
      ...(store.project.model === 'embedded' ? [[null, 'the model’s own']] : []),
      ...this.fitting(store.project.model).map(({ name, method }) => [
        name,
        name === method ? name : `${name} (${method})`,
      ]),
    ];
    this.adapters = choice(
      'Adapter',
      adapters,
      () => this.film.adapter,
      (adapter) => this.set({ adapter }),
    );
    this.about = h('p', { class: 'help' });
    const follows = () => [
      ['nothing', 'nothing'],
      ['blocks', 'the blocked-out scene'],
      ...(store.project.map ? [['map', `map: ${store.project.map.name}`]] : []),
    ];
    this.follow = choice(
      'Follow the distances of',
      follows,
      () => store.project.follow,
      (follow) => store.edit((project) => (project.follow = follow)),
    );
    this.warning = h('p', { class: 'problem', role: 'alert', hidden: true });
    this.go = button('Film', () => this.shoot(), {
      look: 'primary large',
      glyph: 'film',
      key: 'film',
      title: 'Film this take (Ctrl+Enter)',
    });
    this.state = h('p', { class: 'help', 'aria-live': 'polite' });
    this.queue = h('ol', { class: 'queue', 'aria-label': 'Takes under way' });
    const how = section(
      'How',
      h(
        'div',
        { class: 'halves' },
        this.numbers.map(({ element }) => element),
      ),
      button('Another seed', () => this.set({ seed: Math.floor(Math.random() * 10000) }, null), {
        glyph: 'dice',
        look: 'small',
      }),
      h('div', { class: 'halves' }, this.models.element, this.adapters.element),
      this.about,
      this.follow.element,
    );
    const what = section('What', this.prompt.element, this.known);
    this.element = columns([what], [how, this.warning, this.go, this.state, this.queue]);
    this.drawKnown();
  }

  /** The adapters that may fit a model; those of the package fit its own. */
  fitting(model) {
    return this.studio.start.adapters.filter(({ models }) => !models || models.includes(model));
  }

  useModel(name) {
    const model = this.studio.start.models.find((each) => each.name === name);
    const given = this.fitting(name).filter(({ method }) => method !== 'none');
    const adapter = name === 'embedded' ? null : (given[0]?.name ?? 'none');
    const { frames, width, height, fps } = model;
    this.studio.store.edit((project) => {
      Object.assign(project, { model: name, clip: { frames, width, height, fps } });
      Object.assign(project.film, { adapter, steps: null, guidance: null, camera_guidance: null });
    });
    this.drawKnown();
  }

  /** The words that a small model knows, to click together. */
  drawKnown() {
    const known = this.model.words;
    if (!known) return this.known.replaceChildren();
    const another = () => {
      const pick = (list) => list[Math.floor(Math.random() * list.length)];
      const [one, two] = [pick(known.colours), pick(known.colours.filter((_, i, all) => all.length > 1))];
      const article = (word) => (/^[aeiou]/.test(word) ? 'an' : 'a');
      const other = two === one ? known.colours[(known.colours.indexOf(one) + 1) % known.colours.length] : two;
      return `${article(one)} ${one} ${pick(known.kinds)} and ${article(other)} ${other} ${pick(known.kinds)} in a ${pick(known.places)} courtyard`;
    };
    return this.known.replaceChildren(
      h(
        'p',
        { class: 'help' },
        `This small model knows ${known.kinds.join(', ')} in ${known.colours.join(', ')}, in a ${known.places.join(', ')} courtyard.`,
      ),
      button('Another prompt', () => this.set({ prompt: another() }, null), { glyph: 'dice', look: 'small' }),
    );
  }

  async shoot() {
    const { store, derived, takes, room } = this.studio;
    if (!derived.path) return notice('Mend the path first.', 'warning');
    if (this.go.disabled) return undefined;
    this.go.disabled = true;
    const take = await attempt(() => api.film(filmBody(store.project, derived.path.near)));
    this.go.disabled = false;
    if (!take) return undefined;
    takes.put(take);
    return room.watch(take.take);
  }

  update() {
    for (const field of [this.prompt, ...this.numbers, this.models, this.adapters, this.follow]) field.update();
    const { start, store, derived } = this.studio;
    const adapter = start.adapters.find(({ name }) => name === this.film.adapter);
    this.about.textContent = adapter ? adapter.about : this.model.about;
    const outside = this.outside();
    this.warning.textContent = derived.problems.path || outside;
    this.warning.hidden = !this.warning.textContent;
    if (store.project.follow === 'map' && !store.project.map) this.follow.select.value = JSON.stringify('nothing');
  }

  /** Where the lens lies outside what a small model was trained with: it will not obey there, and that is said first. */
  outside() {
    const { trained } = this.model;
    const { path } = this.studio.derived;
    if (!trained || !path) return '';
    const xi = Math.max(...path.lenses.map((lens) => lens[4]));
    const [low, high] = [Math.min(...path.hfov), Math.max(...path.hfov)];
    if (low < trained.hfov[0] - 0.5 || high > trained.hfov[1] + 0.5 || xi > trained.xi[1] + 0.005)
      return `This model was trained with ${trained.hfov[0]} to ${trained.hfov[1]}° and a bend up to ${trained.xi[1]}: beyond that it may not obey.`;
    return '';
  }

  drawQueue() {
    const { takes } = this.studio;
    const { worker } = takes;
    const said = {
      loading: 'The model is being loaded …',
      restarting: 'The worker stopped and is being started again …',
      ready: 'Ready.',
      working: 'Filming.',
    };
    this.state.textContent = takes.online ? (said[worker?.state] ?? '') : 'The studio does not answer; trying again …';
    refill(
      this.queue,
      takes.unfinished.map((take) => this.waiting(take)),
    );
  }

  waiting(take) {
    const { takes } = this.studio;
    const step = takes.steps.get(take.take);
    const working = take.state === 'working';
    const left = take.left === null || take.left === undefined ? '' : ` · ${plain(take.left, 0)} s left`;
    const doing = take.steps
      ? `${take.doing || 'filming'}, step ${take.step ?? 0} of ${take.steps}`
      : take.doing || 'starting';
    const place = take.place === null ? '' : `place ${take.place} in the queue`;
    return h(
      'li',
      { class: 'waiting' },
      step ? stepPicture(step) : h('div', { class: 'step-picture empty' }),
      h(
        'div',
        {},
        h('p', {}, take.title || take.asked?.prompt || take.kind),
        h('p', { class: 'help' }, (working ? doing : place) + left),
        working && take.steps
          ? h('progress', { max: take.steps, value: take.step ?? 0, 'aria-label': 'Progress' })
          : null,
      ),
      button('Cancel', () => attempt(() => api.removeTake(take.take)), { look: 'small', key: `cancel ${take.take}` }),
    );
  }
}

/** The newest picture of a take: its middle frame, cut out of the row that the server sends; of a large model its first. */
export function stepPicture({ picture, frames }) {
  const alt = frames === 1 ? 'The first frame after the latest step' : 'The middle frame after the latest step';
  const image = h('img', { src: picture, alt });
  const middle = Math.floor(frames / 2);
  image.style.width = `${100 * frames}%`;
  image.style.transform = `translateX(${(-100 * middle) / frames}%)`;
  return h('div', { class: 'step-picture' }, image);
}
