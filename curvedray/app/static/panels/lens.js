// The lens: its view in degrees or millimetres, its bend, a lens by name; and what a keyframe has of its own.

import { h, plain } from '../ui/dom.js';
import { dial } from '../ui/dial.js';
import { button, choice, columns, number, section, segmented, slider } from '../ui/fields.js';
import { fovOfMillimetres, millimetres, widestFov } from '../view/lens.js';

export class LensPanel {
  constructor(studio) {
    this.studio = studio;
    this.unit = 'deg';
    this.build();
  }

  get lens() {
    return this.studio.store.project.lens;
  }

  get widest() {
    return Math.min(235, widestFov(this.lens.xi) - 0.6);
  }

  change(changes) {
    this.studio.store.edit((project) => Object.assign(project.lens, changes), `lens ${Object.keys(changes)}`);
  }

  millimetres(lens = this.lens) {
    const { width, height } = this.studio.store.project.clip;
    return millimetres(lens, width, height);
  }

  build() {
    const { start, store } = this.studio;
    const wide = (hfov) => this.change({ hfov: Math.min(hfov, this.widest), name: null });
    this.dial = dial('Field of view', () => this.lens.hfov, wide, {
      max: () => this.widest,
      words: (value) => {
        const focal = `${plain(this.millimetres({ ...this.lens, hfov: value }), 1)} mm`;
        return this.unit === 'deg' ? [`${plain(value, 1)}°`, focal] : [focal, `${plain(value, 1)}°`];
      },
    });
    const units = segmented(
      'Field of view in',
      [
        ['deg', 'degrees'],
        ['mm', 'mm'],
      ],
      () => this.unit,
      (unit) => {
        this.unit = unit;
        units.update();
        this.update();
      },
      { hideLabel: true },
    );
    this.degrees = number('Field of view', () => this.lens.hfov, wide, {
      min: 10,
      max: 235,
      unit: '°',
      digits: 1,
      key: 'view degrees',
    });
    this.focal = number(
      'Focal length',
      () => this.millimetres(),
      (mm) => {
        const { width, height } = store.project.clip;
        wide(fovOfMillimetres(mm, this.lens.xi, width, height));
      },
      { min: 1, max: 400, unit: 'mm', digits: 1, key: 'view millimetres' },
    );
    this.bend = slider(
      'Bend (xi)',
      () => this.lens.xi,
      (xi) => {
        const hfov = Math.min(this.lens.hfov, Math.min(235, widestFov(xi) - 0.6));
        this.change({ xi, hfov, name: null });
      },
      { min: 0, max: 2, step: 0.01 },
    );
    const named = () => [[null, 'my own'], ...start.lenses.map(({ name }) => [name, name])];
    this.named = choice(
      'Named lens',
      named,
      () => this.lens.name ?? null,
      (name) => this.choose(name),
    );
    this.about = h('p', { class: 'help' });
    this.own = h('div', { class: 'stack' });
    const lens = section(
      'Lens',
      this.named.element,
      this.about,
      this.dial.element,
      h('div', { class: 'row' }, units.element, this.degrees.element, this.focal.element),
      this.bend.element,
    );
    this.element = columns([lens], [section('This keyframe', this.own)]);
    this.makeKeyFields();
  }

  choose(name) {
    const found = this.studio.start.lenses.find((lens) => lens.name === name);
    if (found) this.change({ name, hfov: found.hfov, xi: found.xi });
    else this.change({ name: null });
  }

  /** Pan and zoom of the selected keyframe. */
  makeKeyFields() {
    const { studio } = this;
    const key = () => studio.store.project.path.keys[studio.shot.key];
    const own = () => ({ ...this.lens, ...(key()?.lens ?? {}) });
    const set = (changes) => studio.edits.setLens(studio.shot.key, changes);
    const turn = (yaw) => studio.edits.set(studio.shot.key, { yaw });
    this.keyFields = [
      slider('Pan', () => key()?.yaw ?? 0, turn, {
        min: -180,
        max: 180,
        step: 0.5,
        unit: '°',
        digits: 1,
        key: 'key pan',
      }),
      slider(
        'Zoom',
        () => own().zoom ?? 1,
        (zoom) => set({ zoom }),
        { min: 0.5, max: 4, step: 0.01, unit: '×', key: 'key zoom' },
      ),
      slider(
        'View',
        () => own().hfov,
        (hfov) => set({ hfov, name: null }),
        { min: 20, max: 235, step: 0.5, unit: '°', digits: 1, key: 'key view' },
      ),
      slider(
        'Shift across',
        () => 100 * (own().pan ?? [0, 0])[0],
        (x) => set({ pan: [x / 100, (own().pan ?? [0, 0])[1]] }),
        { min: -50, max: 50, step: 1, unit: '%', digits: 0, key: 'key shift x' },
      ),
      slider(
        'Shift down',
        () => 100 * (own().pan ?? [0, 0])[1],
        (y) => set({ pan: [(own().pan ?? [0, 0])[0], y / 100] }),
        { min: -50, max: 50, step: 1, unit: '%', digits: 0, key: 'key shift y' },
      ),
    ];
    this.back = button('Use the lens of the shot', () => studio.edits.set(studio.shot.key, { lens: null }, null), {
      look: 'small',
    });
    this.none = h('p', { class: 'help' }, 'Pan and zoom over the clip: select a keyframe on the timeline. ');
    this.none.append(button('Edit as keyframes', () => studio.edits.open(), { look: 'small', key: 'lens open keys' }));
    this.fields = h(
      'div',
      { class: 'stack' },
      this.keyFields.map((field) => field.element),
      this.back,
    );
    this.own.append(this.none, this.fields);
  }

  update() {
    const { project } = this.studio.store;
    const { key } = this.studio.shot;
    this.degrees.element.hidden = this.unit !== 'deg';
    this.focal.element.hidden = this.unit !== 'mm';
    for (const field of [this.dial, this.degrees, this.focal, this.bend, this.named]) field.update();
    const found = this.studio.start.lenses.find(({ name }) => name === this.lens.name);
    this.about.textContent = found
      ? found.about
      : `a lens of your own; with this bend it can see up to ${plain(widestFov(this.lens.xi), 0)}°`;
    const chosen = project.path.kind === 'keys' && key !== null && project.path.keys[key];
    this.none.hidden = Boolean(chosen);
    this.fields.hidden = !chosen;
    if (chosen) {
      for (const field of this.keyFields) field.update();
      this.back.disabled = !chosen.lens;
    }
  }
}
