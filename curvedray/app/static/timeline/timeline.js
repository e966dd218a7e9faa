// The clip from left to right: a ruler in seconds, the playhead, the keyframes and how long the way between them takes.

import { clamp, h, plain, refill, withNextFrame } from '../ui/dom.js';
import { button, number, slider, toggle } from '../ui/fields.js';
import { Filmstrip } from './filmstrip.js';
import { moments, timed } from './keys.js';

const NARROWEST = 0.06; // of the clip, that a segment's words fit between its keyframes

export class Timeline {
  constructor(studio) {
    this.studio = studio;
    this.build();
    for (const source of [studio.store, studio.derived, studio.shot])
      source.addEventListener('change', () => this.ask());
  }

  get edits() {
    return this.studio.edits;
  }

  build() {
    const { studio } = this;
    const { shot, player } = studio;
    this.play = button('', () => player.toggle(), { glyph: 'play', label: 'Play', key: 'play' });
    this.clock = h('output', { class: 'clock' });
    this.ruler = h('div', { class: 'ruler', 'aria-hidden': 'true' });
    this.head = h('div', {
      class: 'playhead',
      role: 'slider',
      tabindex: 0,
      'aria-label': 'Frame',
      'aria-valuemin': 1,
      'data-key': 'playhead',
    });
    this.marks = h('div', { class: 'marks' });
    this.strip = new Filmstrip(studio);
    this.track = h('div', { class: 'track' }, this.ruler, this.strip.canvas, this.marks, this.head);
    this.track.addEventListener('pointerdown', (event) => this.scrub(event));
    this.head.addEventListener('keydown', (event) => this.step(event));
    const selected = (act) => () => shot.key !== null && act(shot.key);
    this.keyed = [
      button(
        '',
        selected((i) => this.edits.overwrite(i)),
        { glyph: 'eye', label: 'Overwrite from the view', title: 'The selected keyframe becomes what you see (O)' },
      ),
      button(
        '',
        selected((i) => this.edits.copy(i)),
        { glyph: 'copy', label: 'Copy the keyframe', title: 'Copy the selected keyframe (Ctrl+D)' },
      ),
      button(
        '',
        selected((i) => this.edits.remove(i)),
        { glyph: 'trash', label: 'Delete the keyframe', title: 'Delete the selected keyframe (Delete)' },
      ),
    ];
    this.add = button('Keyframe', () => this.edits.addHere(), {
      glyph: 'plus',
      title: 'Add a keyframe at the playhead (K)',
    });
    const path = () => studio.store.project.path;
    this.seconds = number(
      'Segment',
      () => this.segment(),
      (value) => shot.key !== null && this.edits.last(shot.key, value),
      { min: 0.02, step: 0.1, unit: 's', key: 'segment seconds' },
    );
    this.smooth = slider(
      'Smooth',
      () => path().smoothness,
      (smoothness) => this.edits.shape({ smoothness }),
      { min: 0, max: 1, step: 0.05 },
    );
    this.loop = toggle(
      'Loop',
      () => path().loop,
      (loop) => this.edits.shape({ loop }),
    );
    this.even = toggle(
      'Even speed',
      () => path().constant_speed,
      (constant_speed) => this.edits.shape({ constant_speed }),
    );
    this.shapes = h(
      'div',
      { class: 'shapes' },
      this.seconds.element,
      this.smooth.element,
      this.loop.element,
      this.even.element,
    );
    this.element = h(
      'section',
      { class: 'timeline', 'aria-label': 'Timeline' },
      h(
        'header',
        {},
        this.play,
        this.clock,
        h('span', { class: 'divider' }),
        this.add,
        ...this.keyed,
        h('span', { class: 'spacer' }),
        this.shapes,
      ),
      this.track,
    );
  }

  segment() {
    const { key } = this.studio.shot;
    const { path } = this.studio.store.project;
    if (key === null || !path.keys[key] || (!path.loop && key === path.keys.length - 1)) return null;
    return timed(path.keys, this.edits.total, path.loop)[key].seconds;
  }

  ask = withNextFrame(() => this.update());

  update() {
    const { shot, store } = this.studio;
    const { project } = store;
    const keys = project.path.kind === 'keys';
    const { fps } = project.clip;
    const share = shot.frames > 1 ? shot.frame / (shot.frames - 1) : 0;
    this.head.style.left = `${100 * share}%`;
    this.head.setAttribute('aria-valuemax', shot.frames);
    this.head.setAttribute('aria-valuenow', shot.frame + 1);
    this.head.setAttribute(
      'aria-valuetext',
      `Frame ${shot.frame + 1} of ${shot.frames}, ${plain(shot.frame / fps)} seconds`,
    );
    this.clock.textContent = `${(shot.frame / fps).toFixed(2)} s · ${shot.frame + 1} / ${shot.frames} · ${plain(fps)} fps`;
    if (this.play.dataset.playing !== String(shot.playing)) {
      this.play.dataset.playing = shot.playing;
      const fresh = button('', () => this.studio.player.toggle(), {
        glyph: shot.playing ? 'pause' : 'play',
        label: shot.playing ? 'Pause' : 'Play',
        key: 'play',
      });
      this.play.replaceChildren(...fresh.childNodes);
      this.play.setAttribute('aria-label', shot.playing ? 'Pause' : 'Play');
    }
    for (const each of this.keyed) each.disabled = !keys || shot.key === null;
    this.shapes.hidden = !keys;
    this.seconds.input.disabled = this.segment() === null;
    for (const field of [this.seconds, this.smooth, this.loop, this.even]) field.update();
    this.drawRuler();
    this.drawMarks(keys);
  }

  drawRuler() {
    const { total } = this.edits;
    if (this.ruled === total) return;
    this.ruled = total;
    const step = [0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10].find((i) => total / i <= 12) ?? 30;
    const count = Math.floor(total / step + 1e-6);
    this.ruler.replaceChildren(
      ...Array.from({ length: count + 1 }, (_, i) => {
        const mark = h('span', {}, `${plain(i * step)} s`);
        mark.style.left = `${(100 * i * step) / total}%`;
        return mark;
      }),
    );
  }

  drawMarks(keys) {
    const { shot, store, derived } = this.studio;
    const { path } = store.project;
    if (!keys) {
      const words = path.kind === 'upload' ? `Path of ${path.name}` : path.moves;
      if (!this.differs(words)) return;
      refill(
        this.marks,
        h('div', { class: 'bar' }, words),
        button('Edit as keyframes', () => this.edits.open(), { look: 'small', key: 'open keys' }),
      );
      return;
    }
    const { total } = this.edits;
    const list = timed(path.keys, total, path.loop);
    const at =
      path.constant_speed && derived.path?.keys?.length === list.length
        ? derived.path.keys.map(({ seconds }) => seconds)
        : moments(list);
    if (!this.differs([at, list.map(({ seconds }) => seconds), shot.key, path.loop, path.constant_speed])) return;
    const diamonds = list.map((_, i) => this.diamond(i, at[i], at[i] / total, shot.key === i));
    const ways = list.slice(0, path.loop ? list.length : list.length - 1).map((key, i) => {
      const fits = key.seconds / total > NARROWEST;
      const way = h('span', { class: 'way', 'aria-hidden': 'true' }, fits && `${plain(key.seconds)} s`);
      way.style.left = `${(100 * (at[i] + key.seconds / 2)) / total}%`;
      return way;
    });
    refill(this.marks, path.constant_speed ? [] : ways, diamonds);
  }

  /** Whether the marks show something else than this: only then are they made anew, not under a pointer that drags. */
  differs(marks) {
    const before = this.marked;
    this.marked = JSON.stringify(marks);
    return before !== this.marked;
  }

  diamond(index, moment, share, selected) {
    const mark = h('button', {
      type: 'button',
      class: 'diamond',
      'data-key': `diamond ${index}`,
      'aria-label': `Keyframe ${index + 1} at ${plain(moment)} seconds`,
      'aria-pressed': selected,
      onclick: () => this.studio.shot.select(index),
      onkeydown: (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!step) return;
        event.preventDefault();
        event.stopPropagation();
        this.edits.moveTo(index, moment + step / this.studio.store.project.clip.fps);
      },
    });
    mark.style.left = `${100 * share}%`;
    mark.addEventListener('pointerdown', (event) => {
      event.stopPropagation();
      this.studio.shot.select(index);
      this.drag((x) => this.edits.moveTo(index, x * this.edits.total));
    });
    return mark;
  }

  share(event) {
    const box = this.track.getBoundingClientRect();
    return clamp((event.clientX - box.left) / box.width, 0, 1);
  }

  scrub(event) {
    if (event.target.closest('button')) return;
    const { shot, player } = this.studio;
    if (shot.playing) player.stop();
    if (shot.flown) this.studio.flying.leave();
    const go = (x) => shot.goto(x * (shot.frames - 1));
    go(this.share(event));
    this.drag(go);
  }

  /** Follow the pointer until it is let go; the marks may be drawn anew meanwhile, so the window is listened to. */
  drag(act) {
    const move = (event) => act(this.share(event));
    const end = () => {
      window.removeEventListener('pointermove', move);
      window.removeEventListener('pointerup', end);
      window.removeEventListener('pointercancel', end);
    };
    window.addEventListener('pointermove', move);
    window.addEventListener('pointerup', end);
    window.addEventListener('pointercancel', end);
  }

  step(event) {
    const { shot } = this.studio;
    const to = {
      ArrowLeft: shot.frame - 1,
      ArrowRight: shot.frame + 1,
      Home: 0,
      End: shot.frames - 1,
      PageUp: shot.frame - 4,
      PageDown: shot.frame + 4,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    shot.goto(to);
  }
}
