// Moves in film terms. The text is the truth: buttons write into it, sliders change amounts in it.

import { h, refill } from '../ui/dom.js';
import { button, choice, columns, number, section, segmented, slider, words } from '../ui/fields.js';
import { debounced } from '../state/latest.js';
import { joined, pieces, withMove, withoutMove } from './move_text.js';

const ARROWS = { left: '←', right: '→', up: '↑', down: '↓', in: 'in', out: 'out', cw: '↻', ccw: '↺' };
const TITLES = { dolly_zoom: 'vertigo' };
const LARGEST = { deg: 360, near: 3, m: 10, x: 4 };

export class MovesPanel {
  constructor(studio) {
    Object.assign(this, { studio, join: 'then', cards: '' });
    this.type = debounced((text) => this.write(text, 'typing'), 350);
    this.build();
  }

  get path() {
    return this.studio.store.project.path;
  }

  /** The exact words of the path: the server's, once it has read what was typed. */
  get exact() {
    return this.path.kind === 'moves' ? (this.studio.derived.path?.moves ?? this.path.moves) : this.path.moves;
  }

  write(text, kind = null) {
    this.type.cancel();
    if (this.path.kind === 'moves' && this.path.moves === text) return;
    this.studio.store.edit((project) => Object.assign(project.path, { kind: 'moves', moves: text }), kind);
  }

  build() {
    const { moves } = this.studio.start;
    this.text = words(
      'The move, in words',
      () => this.path.moves,
      (text, done) => (done ? this.write(text) : this.type(text)),
      {
        lines: 2,
        placeholder: 'orbit left 40deg, then dolly in 0.5',
        key: 'moves text',
      },
    );
    this.problem = h('p', { class: 'problem', role: 'alert', hidden: true });
    this.understood = h('p', { class: 'help' });
    const joins = segmented(
      'Add',
      [
        ['then', 'one after another'],
        ['and', 'at the same time'],
      ],
      () => this.join,
      (join) => {
        this.join = join;
        joins.update();
      },
    );
    this.list = h('ol', { class: 'cards' });
    const groups = moves.map((kind) => this.buttons(kind));
    this.kept = h('p', { class: 'help warn', hidden: true }, 'The path is made of keyframes or a file now. ');
    this.kept.append(button('Back to the move', () => this.write(this.path.moves), { look: 'small' }));
    this.element = columns(
      [
        this.kept,
        section('Say it', this.text.element, this.problem, this.understood),
        section('Moves in it', this.list),
      ],
      [section('Add a move', joins.element, h('div', { class: 'palette' }, groups))],
    );
  }

  buttons(kind) {
    const name = TITLES[kind.name] ?? kind.name;
    const add = (direction) => () =>
      this.write(withMove(this.exact, [kind.name, direction].filter(Boolean).join(' '), this.join));
    const doors = kind.directions.length
      ? kind.directions.map((direction) =>
          button(ARROWS[direction], add(direction), { label: `${name} ${direction}`, look: 'quiet' }),
        )
      : [button('add', add(null), { label: name, look: 'quiet' })];
    return h(
      'div',
      { class: 'move', title: `${name}: ${kind.meaning.replaceAll('`', '')}` },
      h('span', {}, name),
      h('div', {}, doors),
    );
  }

  update() {
    const moves = this.path.kind === 'moves';
    this.kept.hidden = moves;
    this.text.update();
    const problem = moves ? this.studio.derived.problems.path : '';
    this.problem.hidden = !problem;
    this.problem.textContent = problem;
    const read = this.exact;
    const notes = moves && !problem ? (this.studio.derived.path?.notes ?? []) : [];
    this.understood.textContent = notes.join(' ');
    this.understood.hidden = !notes.length;
    if (moves && !problem) this.drawCards(read);
  }

  /** One card per move of the exact text; made anew only where the moves themselves are others. */
  drawCards(text) {
    const parts = pieces(text);
    const shape = JSON.stringify(
      parts.map(({ text: t, move }) => (move ? [move.name, move.word, Boolean(move.to)] : t)),
    );
    this.parts = parts;
    if (shape !== this.cards) {
      this.cards = shape;
      this.fields = [];
      let join = '';
      const items = parts.map((part, i) => {
        if (!part.move) join = part.text.replace(/[,()]/g, '').trim();
        return part.move ? this.card(i, join) : null;
      });
      refill(this.list, items);
    }
    for (const field of this.fields) field.update();
  }

  set(index, changes) {
    const parts = this.parts.map((part, i) => (i === index ? { ...part, move: { ...part.move, ...changes } } : part));
    this.write(joined(parts), `move ${index} ${Object.keys(changes)}`);
  }

  card(index, join) {
    const move = () => this.parts[index]?.move ?? {};
    const kind = this.studio.start.moves.find(({ name }) => name === move().name);
    const key = (word) => `card ${index} ${word}`;
    const made = [];
    if (kind.directions.length && move().direction)
      made.push(
        choice(
          'Direction',
          () => kind.directions.map((i) => [i, i]),
          () => move().direction,
          (direction) => this.set(index, { direction }),
          { key: key('direction') },
        ),
      );
    if (move().amount) {
      const { unit } = move().amount;
      const shown = { deg: '°', near: 'near', m: 'm', x: '×' }[unit];
      made.push(
        slider(
          'Amount',
          () => move().amount?.value,
          (value) => this.set(index, { amount: { ...move().amount, value } }),
          {
            min: unit === 'x' ? 1 : 0,
            max: Math.max(LARGEST[unit], move().amount.value),
            step: unit === 'deg' ? 1 : 0.05,
            unit: shown,
            key: key('amount'),
          },
        ),
      );
    }
    if (move().distance)
      made.push(
        slider(
          capital(move().word),
          () => move().distance?.value,
          (value) => this.set(index, { distance: { ...move().distance, value } }),
          {
            min: move().word === 'sway' ? 0 : 0.1,
            max: move().word === 'sway' ? 0.2 : 4,
            step: move().word === 'sway' ? 0.005 : 0.05,
            unit: 'near',
            digits: 3,
            key: key('distance'),
          },
        ),
      );
    if (move().seed !== null)
      made.push(
        number(
          'Seed',
          () => move().seed,
          (seed) => this.set(index, { seed: Math.round(seed) }),
          { min: 0, step: 1, digits: 0, key: key('seed') },
        ),
      );
    if (kind.name !== 'static')
      made.push(
        choice(
          'Easing',
          () => this.studio.start.easings.map((i) => [i, i]),
          () => move().ease,
          (ease) => this.set(index, { ease }),
          { key: key('ease') },
        ),
      );
    made.push(
      number(
        'Takes',
        () => move().seconds,
        (seconds) => this.set(index, { seconds, share: null }),
        { min: 0.05, unit: 's', empty: 'its share', key: key('seconds') },
      ),
    );
    this.fields.push(...made);
    const title = `${TITLES[kind.name] ?? kind.name}`;
    return h(
      'li',
      { class: 'card' },
      h(
        'header',
        {},
        h('h4', {}, join === 'and' ? h('em', {}, 'at once ') : join === 'then' ? h('em', {}, 'then ') : null, title),
        button('', () => this.write(withoutMove(this.parts, index)), {
          glyph: 'trash',
          label: `Remove ${title}`,
          look: 'quiet small',
          key: key('remove'),
        }),
      ),
      h(
        'div',
        { class: 'fields' },
        made.map(({ element }) => element),
      ),
      h('p', { class: 'help' }, kind.meaning.replaceAll('`', '')),
    );
  }
}

const capital = (word) => word[0].toUpperCase() + word.slice(1);
