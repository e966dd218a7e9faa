// The scene: what the caption asks for, or grey boxes, balls, pillars and walls placed by hand, or an empty court; and
// a map of distances brought from elsewhere, with regions cut out of it.

import { h, plain, refill } from '../ui/dom.js';
import { button, columns, number, openCard, section, segmented, words } from '../ui/fields.js';
import { icon } from '../ui/icons.js';
import { attempt } from '../ui/notices.js';
import { api } from '../state/api.js';
import { CutsPanel } from './cuts.js';
import { MapPanel } from './map.js';

const KINDS = ['box', 'ball', 'pillar', 'wall'];

export class ScenePanel {
  constructor(studio) {
    Object.assign(this, { studio, shape: '', fields: [] });
    this.map = new MapPanel(studio);
    this.cuts = new CutsPanel(studio);
    this.build();
  }

  get scene() {
    return this.studio.store.project.scene;
  }

  build() {
    const { studio } = this;
    this.kind = segmented(
      'The scene is',
      [
        ['caption', 'the prompt’s'],
        ['blocks', 'blocked out'],
        ['court', 'a court'],
      ],
      () => this.scene.kind,
      (kind) => this.choose(kind),
    );
    this.about = h('p', { class: 'help' });
    this.problem = h('p', { class: 'problem', role: 'alert', hidden: true });
    this.add = h(
      'div',
      { class: 'adders' },
      KINDS.map((kind) => button(kind, () => studio.blocks.add(kind), { glyph: kind, label: `Add a ${kind}` })),
    );
    this.list = h('ol', { class: 'cards' });
    this.text = words(
      'In words',
      () => studio.derived.scene?.text ?? '',
      (text, done) => done && this.read(text),
      { lines: 3, placeholder: 'box 1x1x2m at left 2m ahead 4m; wall ahead 7m', key: 'blocks text' },
    );
    this.eye = number(
      'Eye above the floor',
      () => this.scene.eye,
      (eye) => studio.store.edit((project) => (project.scene.eye = eye), 'eye'),
      { min: 0.1, max: 100, step: 0.1, unit: 'm' },
    );
    this.blocked = section('Blocks', this.add, this.list, this.text.element, this.eye.element);
    const scene = section('Scene', this.kind.element, this.about, this.problem);
    this.element = columns([scene, this.blocked], [this.cuts.element, this.map.element]);
  }

  choose(kind) {
    if (kind === 'blocks') {
      if (this.scene.blocks.length) this.studio.blocks.edit((blocks) => blocks);
      else this.studio.blocks.add('box');
    } else this.studio.store.edit((project) => (project.scene.kind = kind));
  }

  /** Blocks from a line of text, read by the server. */
  read(text) {
    const { store, derived } = this.studio;
    if (text.trim() === (derived.scene?.text ?? '')) return null;
    return attempt(async () => {
      const { clip, lens } = store.project;
      const { name, hfov, xi } = lens;
      const made = await api.scene({
        scene: { text, eye: this.scene.eye },
        lens: name ? { name } : { hfov, xi },
        width: clip.width,
        height: clip.height,
        positions: null,
      });
      this.studio.blocks.edit(() => made.blocks);
    });
  }

  update() {
    const { derived, shot } = this.studio;
    const { blocks, kind } = this.scene;
    this.kind.update();
    this.blocked.hidden = kind !== 'blocks';
    this.problem.textContent = derived.problems.scene;
    this.problem.hidden = !derived.problems.scene;
    const near = derived.scene ? ` Near distance ${plain(derived.scene.near)} m.` : '';
    this.about.textContent = {
      caption: `What the prompt asks for, as the model’s own world builds it.${near}`,
      blocks: `Grey stand-ins for layout: drag them in the set, or type.${near}`,
      court: `A striped room, to see what lens and path do.${near}`,
    }[kind];
    const shape = `${blocks.map((block) => block.kind)} ${shot.block}`;
    if (shape !== this.shape) {
      this.shape = shape;
      this.fields = [];
      refill(
        this.list,
        blocks.map((block, i) => this.card(i, block.kind)),
      );
    }
    for (const field of [this.text, this.eye, ...this.fields]) field.update();
    this.cuts.update();
    this.map.update();
  }

  card(index, kind) {
    const { blocks, shot } = this.studio;
    const block = () => this.scene.blocks[index] ?? { size: [1, 1, 1], moving: [0, 0] };
    const open = index === shot.block;
    const title = `${kind} ${index + 1}`;
    const head = h(
      'button',
      {
        type: 'button',
        class: 'key-head',
        'aria-expanded': open,
        'data-key': `block ${index}`,
        onclick: () => shot.selectBlock(open ? null : index),
      },
      icon(kind),
      h('span', {}, title),
      h('output', { class: 'key-words' }),
    );
    const say = {
      update: () =>
        (head.querySelector('output').textContent =
          `${plain(block().right)}, ${plain(block().ahead)} m${block().moving.some(Boolean) ? ' moving' : ''}`),
    };
    say.update();
    this.fields.push(say);
    if (!open) return h('li', { class: 'card' }, head);
    const { sides } = this.studio.start.blocks.find((usual) => usual.kind === kind);
    const field = (label, get, set, options) =>
      number(label, get, set, { step: 0.1, unit: 'm', digits: 3, key: `block ${index} ${label}`, ...options });
    const one = (name) => [() => block()[name], (value) => blocks.set(index, { [name]: value })];
    const of = (name, i) => [
      () => block()[name][i],
      (value) => blocks.set(index, { [name]: block()[name].map((old, j) => (j === i ? value : old)) }),
    ];
    const made = [
      field('Right', ...one('right')),
      field('Ahead', ...one('ahead')),
      field('Up', ...one('up'), { min: 0 }),
      ...sides.map((side, i) => field(side[0].toUpperCase() + side.slice(1), ...of('size', i), { min: 0.05 })),
      ...(kind === 'box' || kind === 'wall'
        ? [field('Turned', ...one('turned'), { unit: '°', step: 5, digits: 1 })]
        : []),
      field('Moves right', ...of('moving', 0)),
      field('Moves ahead', ...of('moving', 1)),
    ];
    this.fields.push(...made);
    return openCard(
      head,
      made,
      h(
        'div',
        { class: 'row' },
        button('Copy', () => blocks.copy(index), { look: 'small', glyph: 'copy', key: `copy ${title}` }),
        button('Remove', () => blocks.remove(index), { look: 'small', glyph: 'trash', key: `remove ${title}` }),
      ),
    );
  }
}
