// Footage: a video of one's own, to score against cameras, or to take its motion over to another prompt.

import { h } from '../ui/dom.js';
import { button, choice, columns, number, section, words } from '../ui/fields.js';
import { attempt, notice } from '../ui/notices.js';
import { api } from '../state/api.js';
import { lensBody, pathBody } from '../state/project.js';

export class FootagePanel {
  constructor(studio) {
    Object.assign(this, { studio, video: null, against: 'own', prompt: '', estimate: 'embedded', teacher: 'embedded' });
    Object.assign(this, { maker: { model: 'embedded', adapter: null }, seed: 0 });
    this.build();
  }

  build() {
    const { studio } = this;
    this.file = h('input', {
      type: 'file',
      class: 'hidden',
      tabindex: -1,
      accept: 'video/*',
      'aria-label': 'A video',
      onchange: () => this.bring(this.file.files[0]).then(() => (this.file.value = '')),
    });
    this.preview = h('video', { muted: true, loop: true, controls: true, playsinline: true, hidden: true });
    this.name = h('p', { class: 'help' }, 'No video yet.');
    const against = () => [
      ['own', 'the cameras in its own recipe'],
      ['path', 'the path on this page'],
    ];
    this.cameras = choice(
      'Compare with',
      against,
      () => this.against,
      (value) => (this.against = value),
    );
    this.words = words(
      'New prompt',
      () => this.prompt || studio.store.project.film.prompt,
      (text) => (this.prompt = text),
      { lines: 2, spell: true, key: 'transfer prompt' },
    );
    const estimators = () => [
      ['embedded', 'embedded'],
      ['colmap', 'COLMAP'],
      [null, 'its own recipe'],
    ];
    this.estimates = choice(
      'Cameras from',
      estimators,
      () => this.estimate,
      (value) => (this.estimate = value),
    );
    const teachers = () => [
      ['embedded', 'embedded'],
      ['depth-anything', 'Depth Anything'],
      ['colmap', 'COLMAP'],
    ];
    this.teachers = choice(
      'Distances from',
      teachers,
      () => this.teacher,
      (value) => (this.teacher = value),
    );
    this.makers = choice(
      'Filmed by',
      () => makersOf(studio.start),
      () => this.maker,
      (value) => (this.maker = value),
      { key: 'transfer model' },
    );
    this.without = h(
      'p',
      { class: 'help', hidden: withoutMaps(studio.start).length === 0 },
      `${withoutMaps(studio.start).join(', ')}: to follow footage it needs an adapter that was trained with maps (--adapter).`,
    );
    this.seeds = number(
      'Seed',
      () => this.seed,
      (seed) => (this.seed = Math.round(seed)),
      { min: 0, step: 1, digits: 0, key: 'transfer seed' },
    );
    this.score = button('Score it', () => this.send('score'), { look: 'primary', key: 'score it' });
    this.transfer = button('Transfer its motion', () => this.send('transfer'), { look: 'primary', key: 'transfer it' });
    const footage = section(
      'Footage',
      h('p', { class: 'help' }, 'Drop a video anywhere on the page, or choose one.'),
      this.file,
      button('Choose a video', () => this.file.click(), { key: 'choose video' }),
      this.name,
      this.preview,
    );
    const motion = section(
      'Take its motion',
      this.words.element,
      h('div', { class: 'halves' }, this.estimates.element, this.teachers.element),
      h('div', { class: 'halves' }, this.makers.element, this.seeds.element),
      this.without,
      this.transfer,
    );
    this.element = columns([footage, section('Did it obey?', this.cameras.element, this.score)], [motion]);
    this.update();
  }

  async bring(file) {
    if (!file) return;
    this.name.textContent = `Uploading ${file.name} …`;
    const made = await attempt(() => api.upload('video', file));
    if (!made) {
      this.name.textContent = 'No video yet.';
      return;
    }
    this.video = made;
    this.name.textContent = file.name;
    if (this.preview.src) URL.revokeObjectURL(this.preview.src);
    this.preview.src = URL.createObjectURL(file);
    this.preview.hidden = false;
    this.update();
  }

  async send(kind) {
    const { store, derived, takes, room } = this.studio;
    const { upload, name } = this.video;
    const lens = lensBody(store.project.lens);
    const path = this.against === 'path' ? pathBody(store.project, derived.path.near) : null;
    const prompt = this.words.input.value.trim();
    const body =
      kind === 'score'
        ? {
            upload,
            cameras: null,
            path,
            lens: null, // the recipe's own, or the path's
            estimator: null,
            stride: 1,
            title: `Score of ${name}`,
          }
        : {
            upload,
            prompt,
            cameras: null,
            lens,
            estimate: this.estimate,
            teacher: this.teacher,
            moves: null,
            ...this.maker,
            seed: this.seed,
            title: '',
          };
    const take = await attempt(() => (kind === 'score' ? api.score(body) : api.transfer(body)));
    if (!take) return;
    takes.put(take);
    room.watch(take.take);
    notice(kind === 'score' ? 'The video is being scored.' : 'Its motion is being taken over.');
  }

  update() {
    for (const each of [this.score, this.transfer]) each.disabled = !this.video;
    for (const field of [this.cameras, this.words, this.estimates, this.teachers, this.makers, this.seeds]) field.update();
  }
}

/** Models with an adapter that follows maps: what can film a source's layout. */
function makersOf({ models, adapters }) {
  const given = adapters.filter(({ maps, models: own }) => maps && own === null);
  const large = models.slice(1).flatMap(({ name: model }) =>
    given.map(({ name: adapter }) => [{ model, adapter }, `${model} with ${adapter}`]),
  );
  return [[{ model: 'embedded', adapter: null }, 'embedded'], ...large];
}

/** Models that were offered without one. */
function withoutMaps({ models, adapters }) {
  return adapters.some(({ maps, models: own }) => maps && own === null) ? [] : models.slice(1).map(({ name }) => name);
}
