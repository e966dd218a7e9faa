// The clip as a strip of small pictures through the lens, drawn one by one when nothing moves.

import { debounced } from '../state/latest.js';
import { h } from '../ui/dom.js';

const TALL = 46; // pixels of the strip

export class Filmstrip {
  constructor(studio) {
    this.studio = studio;
    this.canvas = h('canvas', { class: 'filmstrip', 'aria-hidden': 'true' });
    this.job = 0;
    this.later = debounced(() => this.draw(), 500);
    studio.derived.addEventListener('change', () => this.later());
    new ResizeObserver(() => this.later()).observe(this.canvas);
  }

  async draw() {
    const { finder, derived, shot } = this.studio;
    const job = ++this.job;
    if (!finder.webgl || !shot.ready || !this.canvas.clientWidth) return;
    const { path, scene } = derived;
    const across = Math.round((TALL * path.width) / path.height);
    const wide = this.canvas.clientWidth;
    const count = Math.max(2, Math.min(path.frames, Math.floor(wide / across)));
    const page = h('canvas', { width: wide, height: TALL });
    const context = page.getContext('2d', { alpha: false });
    const { caster } = finder.painter;
    const each = wide / count;
    const tall = Math.round((each * path.height) / path.width);
    for (let i = 0; i < count; i++) {
      while (!finder.painter.finished && job === this.job) await new Promise((resolve) => setTimeout(resolve, 60));
      if (job !== this.job || shot.playing) return;
      const frame = Math.round((i / (count - 1)) * (path.frames - 1));
      const lens = shot.lens(Math.ceil(each), Math.max(TALL, tall), frame);
      caster.draw(scene, { lens, pose: path.poses[frame] }, { samples: 1, time: frame / Math.max(1, path.frames - 1) });
      context.drawImage(
        caster.canvas,
        0,
        (lens.size[1] - TALL) / 2,
        lens.size[0],
        TALL,
        Math.floor(i * each),
        0,
        Math.ceil(each),
        TALL,
      );
    }
    [this.canvas.width, this.canvas.height] = [wide, TALL];
    this.canvas.getContext('2d').drawImage(page, 0, 0);
  }
}
