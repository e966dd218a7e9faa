// The path in numbers: every keyframe's position and angles, typed; what the path looks like in words; files in and out.

import { h, plain, refill } from '../ui/dom.js';
import { button, choice, columns, number, openCard, section } from '../ui/fields.js';
import { exportPath, writtenFormats } from '../ui/exports.js';
import { api } from '../state/api.js';
import { debounced } from '../state/latest.js';
import { pathBody } from '../state/project.js';

const PLACES = [
  ['Right', 0],
  ['Down', 1],
  ['Ahead', 2],
];
const ANGLES = [
  ['Yaw', 'yaw'],
  ['Pitch', 'pitch'],
  ['Roll', 'roll'],
];

export class PathPanel {
  constructor(studio) {
    Object.assign(this, { studio, shape: '', fields: [], format: 'nerfstudio', unit: 'metric' });
    this.describe = debounced(() => this.findWords(), 700);
    this.build();
    studio.derived.addEventListener('change', ({ detail }) => detail === 'path' && this.describe());
  }

  build() {
    const { studio } = this;
    this.rows = h('ol', { class: 'cards keys' });
    this.none = h(
      'div',
      { class: 'stack' },
      h('p', { class: 'help' }, 'This path is said in words. Open it as keyframes to drag, turn and type them.'),
      button('Edit as keyframes', () => studio.edits.open(), { look: 'primary', key: 'path open keys' }),
    );
    this.words = h('p', { class: 'help lines', 'aria-live': 'polite' });
    this.formats = choice(
      'Format',
      () => writtenFormats(studio.start),
      () => this.format,
      (format) => {
        this.format = format;
        this.update();
      },
      { key: 'export format' },
    );
    this.units = choice(
      'Lengths in',
      () => [
        ['metric', 'metres'],
        ['near', 'near distances'],
      ],
      () => this.unit,
      (unit) => (this.unit = unit),
    );
    this.convention = h('p', { class: 'help' });
    this.file = h('input', {
      type: 'file',
      id: 'camera-file',
      class: 'hidden',
      tabindex: -1,
      'aria-label': 'A camera file',
      multiple: true,
      onchange: () => this.studio.drops.cameras([...this.file.files]).then(() => (this.file.value = '')),
    });
    this.imported = h('p', { class: 'help' });
    const exported = section(
      'Export the path',
      h('div', { class: 'row' }, this.formats.element, this.units.element),
      this.convention,
      button('Download the path', () => this.download(), { look: 'primary', key: 'download path' }),
    );
    const imported = section(
      'Import a path',
      h('p', { class: 'help' }, 'Drop a camera file anywhere on the page, or choose it. Its format is recognised.'),
      this.file,
      button('Choose a camera file', () => this.file.click(), { key: 'choose cameras' }),
      this.imported,
    );
    const keys = section('Keyframes', this.none, this.rows);
    this.element = columns([keys], [section('In words', this.words), exported, imported]);
  }

  update() {
    const { store, derived, shot } = this.studio;
    const { path } = store.project;
    const keyed = path.kind === 'keys';
    this.none.hidden = keyed;
    this.rows.hidden = !keyed;
    const shape = keyed ? `${path.keys.length} ${shot.key}` : '';
    if (shape !== this.shape) {
      this.shape = shape;
      this.fields = [];
      refill(this.rows, keyed ? path.keys.map((_, i) => this.row(i)) : []);
    }
    for (const field of this.fields) field.update();
    for (const field of [this.formats, this.units]) field.update();
    const format = this.studio.start.formats.find(({ name }) => name === this.format);
    this.convention.textContent = format ? `${format.convention}. Not kept: ${format.lost}.` : '';
    this.imported.textContent =
      path.kind === 'upload'
        ? [`Now: ${path.name}.`, path.about, ...(derived.path?.notes ?? [])].filter(Boolean).join(' ')
        : '';
  }

  row(index) {
    const { edits, shot } = this.studio;
    const key = () => this.studio.store.project.path.keys[index] ?? { position: [0, 0, 0] };
    const open = index === shot.key;
    const head = h(
      'button',
      {
        type: 'button',
        class: 'key-head',
        'aria-expanded': open,
        'data-key': `key head ${index}`,
        onclick: () => shot.select(open ? null : index),
      },
      h('span', { class: 'diamond-mark' }),
      h('span', {}, `Keyframe ${index + 1}`),
      h('output', { class: 'key-words' }),
    );
    const say = {
      update: () =>
        (head.querySelector('output').textContent = key()
          .position.map((i) => plain(i))
          .join(', ')),
    };
    say.update();
    this.fields.push(say);
    if (!open) return h('li', { class: 'card' }, head);
    const places = PLACES.map(([label, axis]) =>
      number(
        label,
        () => key().position[axis],
        (value) => edits.set(index, { position: key().position.map((i, a) => (a === axis ? value : i)) }),
        { step: 0.05, unit: 'm', digits: 3, key: `key ${index} ${label}` },
      ),
    );
    const angles = ANGLES.map(([label, angle]) =>
      number(
        label,
        () => key()[angle],
        (value) => edits.set(index, { [angle]: value }),
        {
          step: 1,
          unit: '°',
          digits: 2,
          min: angle === 'pitch' ? -89.9 : -360,
          max: angle === 'pitch' ? 89.9 : 360,
          key: `key ${index} ${label}`,
        },
      ),
    );
    this.fields.push(...places, ...angles);
    return openCard(head, [...places, ...angles]);
  }

  async findWords() {
    const { store, derived } = this.studio;
    if (!derived.path) return;
    try {
      const said = await api.describe(pathBody(store.project, derived.path.near));
      this.words.textContent = said.words;
    } catch {
      this.words.textContent = '';
    }
  }

  download() {
    const { store, derived } = this.studio;
    const bent = derived.path.lenses.some((lens) => lens[4] > 0);
    return exportPath(this.studio.start, pathBody(store.project, derived.path.near), {
      format: this.format,
      unit: this.unit,
      bent,
    });
  }
}
