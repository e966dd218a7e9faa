// Regions cut out of the distances: there the model decides. They are drawn on the picture of distances, or typed.

import { clamp, h, refill, s } from '../ui/dom.js';
import { button, number, section } from '../ui/fields.js';

const SIDES = ['Left', 'Top', 'Right', 'Bottom'];

export class CutsPanel {
  constructor(studio) {
    Object.assign(this, { studio, shape: '', fields: [], drawing: false });
    this.list = h('ol', { class: 'cards' });
    this.draw = button('Draw a region', () => this.arm(), { key: 'draw a cut' });
    this.element = section(
      'Left to the model',
      h('p', { class: 'help' }, 'Distances inside these regions are not followed.'),
      this.list,
      h(
        'div',
        { class: 'row' },
        this.draw,
        button('Add by numbers', () => this.add([0.35, 0.35, 0.65, 0.65]), { look: 'quiet' }),
      ),
    );
  }

  get cuts() {
    return this.studio.store.project.cuts;
  }

  edit(change, kind = null) {
    this.studio.store.edit((project) => (project.cuts = change(project.cuts)), kind);
  }

  add(box) {
    this.edit((cuts) => [...cuts, { box, frames: null }]);
  }

  set(index, changes) {
    this.edit((cuts) => cuts.map((cut, i) => (i === index ? { ...cut, ...changes } : cut)), `cut ${index}`);
  }

  /** The next drag on the picture of distances makes a region. */
  arm() {
    const { finder } = this.studio;
    this.drawing = true;
    if (finder.shows.what === 'picture') finder.choose({ what: 'distances' });
    finder.second.classList.add('drawing');
  }

  /** Over the picture of distances. */
  attach(frame) {
    this.over = h('div', { class: 'over' });
    frame.append(this.over);
    const share = (event) => {
      const box = frame.getBoundingClientRect();
      return [clamp((event.clientX - box.left) / box.width, 0, 1), clamp((event.clientY - box.top) / box.height, 0, 1)];
    };
    let from = null;
    frame.addEventListener('pointerdown', (event) => {
      if (!this.drawing) return;
      frame.setPointerCapture(event.pointerId);
      from = share(event);
    });
    frame.addEventListener('pointermove', (event) => from && this.show(boxOf(from, share(event))));
    frame.addEventListener('pointerup', (event) => {
      if (!from) return;
      const box = boxOf(from, share(event));
      [from, this.drawing] = [null, false];
      frame.classList.remove('drawing');
      if (box[2] - box[0] > 0.02 && box[3] - box[1] > 0.02) this.add(box);
      else this.show();
    });
  }

  /** The regions that hold at this frame, and one being drawn. */
  show(fresh = null) {
    const { frame } = this.studio.shot;
    const now = this.cuts
      .filter(({ frames }) => !frames || (frames[0] <= frame && frame <= frames[1]))
      .map(({ box }) => box);
    const shapes = [...now, ...(fresh ? [fresh] : [])].map(([left, top, right, bottom]) =>
      s('rect', {
        x: 100 * left,
        y: 100 * top,
        width: 100 * (right - left),
        height: 100 * (bottom - top),
        class: 'cut',
      }),
    );
    this.over?.replaceChildren(
      s('svg', { viewBox: '0 0 100 100', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, shapes),
    );
  }

  update() {
    if (this.shape !== String(this.cuts.length)) {
      this.shape = String(this.cuts.length);
      this.fields = [];
      refill(
        this.list,
        this.cuts.map((_, i) => this.card(i)),
      );
    }
    for (const field of this.fields) field.update();
    this.show();
  }

  card(index) {
    const cut = () => this.cuts[index] ?? { box: [0, 0, 1, 1], frames: null };
    const last = () => this.studio.shot.frames - 1;
    const sides = SIDES.map((label, i) =>
      number(
        label,
        () => 100 * cut().box[i],
        (value) => this.set(index, { box: cut().box.map((old, j) => (j === i ? value / 100 : old)) }),
        { min: 0, max: 100, unit: '%', digits: 0, key: `cut ${index} ${label}` },
      ),
    );
    const frames = [
      ['From frame', 0],
      ['To frame', 1],
    ].map(([label, i]) =>
      number(
        label,
        () => (cut().frames ? cut().frames[i] + 1 : null),
        (value) => {
          const now = cut().frames ?? [0, last()];
          this.set(index, {
            frames: value === null ? null : now.map((old, j) => (j === i ? Math.round(value) - 1 : old)),
          });
        },
        { min: 1, step: 1, digits: 0, empty: i ? 'last' : 'first', key: `cut ${index} ${label}` },
      ),
    );
    this.fields.push(...sides, ...frames);
    return h(
      'li',
      { class: 'card open' },
      h(
        'header',
        {},
        h('h4', {}, `Region ${index + 1}`),
        button('', () => this.edit((cuts) => cuts.filter((_, i) => i !== index)), {
          glyph: 'trash',
          label: `Remove region ${index + 1}`,
          look: 'quiet small',
        }),
      ),
      h(
        'div',
        { class: 'thirds' },
        sides.map(({ element }) => element),
        frames.map(({ element }) => element),
      ),
    );
  }
}

const boxOf = ([a, b], [c, d]) =>
  [Math.min(a, c), Math.min(b, d), Math.max(a, c), Math.max(b, d)].map((i) => Math.round(i * 1e3) / 1e3);
