// Who draws the picture: the browser's WebGL, coarse while something moves and fine at rest, or, without it, the server.

import { api } from '../state/api.js';
import { Latest } from '../state/latest.js';
import { lensBody, pathBody, sceneBody } from '../state/project.js';
import { Caster } from './caster.js';

const QUICK = 32; // milliseconds that a coarse picture, or a strip of a fine one, may take
const SLOWEST_FINE = 1600; // milliseconds of a picture of 2 x 2 samples; beyond it, one sample
const REST = 140; // milliseconds without a change after which the fine picture is drawn
const SMALLEST = 96; // pixels across

/** Draws with WebGL. `targets`: [{canvas, mode}], all drawn from the same camera. */
export class WebglPainter {
  constructor(colours) {
    this.caster = new Caster(document.createElement('canvas'), colours);
    Object.assign(this, { cost: null, costOf: null, job: 0, timer: 0, finished: false });
  }

  /** Microseconds per pixel and ray, measured on this machine with as many things as the scene has. */
  calibrate(scene, camera) {
    const [width, height] = [96, 64];
    const small = camera(width, height);
    this.caster.draw(scene, small, { samples: 1 });
    this.caster.finish();
    const times = [0, 1, 2].map(() => {
      const before = performance.now();
      this.caster.draw(scene, small, { samples: 1 });
      this.caster.finish();
      return performance.now() - before;
    });
    this.costOf = scene.things.length;
    this.cost = Math.max(0.02, (Math.min(...times) * 1000) / (width * height));
  }

  /** Draw now, coarse, and fine once nothing has changed for a moment. */
  paint(targets, scene, camera, { time, limits, moving }) {
    if (this.costOf !== scene.things.length) this.calibrate(scene, camera);
    const job = ++this.job;
    this.finished = false;
    clearTimeout(this.timer);
    for (const target of targets) this.coarse(target, scene, camera, { time, limits }, targets.length);
    if (!moving) this.timer = setTimeout(() => this.fine(job, targets, scene, camera, { time, limits }), REST);
  }

  coarse({ canvas, mode, size }, scene, camera, shown, share) {
    const pixels = (QUICK * 1000) / this.cost / share;
    const shrink = Math.min(1, Math.sqrt(pixels / (size[0] * size[1])));
    const width = Math.max(SMALLEST, Math.round(size[0] * shrink));
    const height = Math.max(1, Math.round((width * size[1]) / size[0]));
    this.caster.draw(scene, camera(width, height), { ...shown, mode, samples: 1 });
    show(canvas, size, this.caster.canvas, [0, 0, width, height], [0, 0, ...size]);
  }

  async fine(job, targets, scene, camera, shown) {
    for (const { canvas, mode, size } of targets) {
      const [width, height] = size;
      const whole = (this.cost * width * height) / 1000;
      const samples = mode === 'picture' && 4 * whole < SLOWEST_FINE ? 2 : 1;
      const strip = Math.max(4, Math.floor((QUICK / (whole * samples * samples)) * height));
      for (let top = 0; top < height; top += strip) {
        if (job !== this.job) return;
        const rows = [top, Math.min(height, top + strip)];
        this.caster.draw(scene, camera(width, height), { ...shown, mode, samples, rows });
        const box = [0, rows[0], width, rows[1] - rows[0]];
        show(canvas, size, this.caster.canvas, box, box);
        await new Promise((resolve) => setTimeout(resolve, 0));
      }
    }
    this.finished = true;
  }

  /** Metres of every pixel of a small picture (0: no ray, 1e30: sky). */
  metres(scene, camera, time) {
    const floats = this.caster.read(scene, camera, { mode: 'radius', time });
    return Array.from({ length: floats.length / 4 }, (_, i) => floats[4 * i]);
  }
}

function show(canvas, [width, height], from, [x, y, w, h], [u, v, a, b]) {
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  canvas.getContext('2d', { alpha: false }).drawImage(from, x, y, w, h, u, v, a, b);
}

/** Asks the server for every picture. */
export class ServerPainter {
  constructor(shot) {
    this.shot = shot;
    this.finished = true;
    this.loops = new Map();
  }

  paint(targets, _scene, _camera, { limits, moving }) {
    for (const { canvas, mode, size } of targets) {
      if (!this.loops.has(canvas)) this.loops.set(canvas, this.loop(canvas));
      const width = Math.min(size[0], moving ? 240 : 480);
      const height = Math.round((width * size[1]) / size[0]);
      this.finished = false;
      this.loops
        .get(canvas)
        .ask({ body: { ...this.body(), what: mode === 'picture' ? 'picture' : 'distances', width, height, limits } });
    }
  }

  body() {
    const { shot } = this;
    const { project } = shot.store;
    const { near } = shot.derived.path;
    const here = { ...shot.here, seconds: 1, lens: lensBody(project.lens) };
    const free = shot.flown || shot.held;
    const path = free
      ? {
          keys: [here, { ...here, position: here.position.map((i) => i + 1e-6) }],
          lens: lensBody(project.lens),
          ...project.clip,
          near,
        }
      : pathBody(project, near);
    return {
      scene: sceneBody(project),
      path,
      frame: free ? 0 : shot.frame,
      samples: 1,
      positions: shot.derived.positions(),
    };
  }

  loop(canvas) {
    return new Latest(
      async ({ body }) => createImageBitmap(await (await api.picture(body)).blob()),
      (picture) => {
        show(
          canvas,
          [picture.width, picture.height],
          picture,
          [0, 0, picture.width, picture.height],
          [0, 0, picture.width, picture.height],
        );
        this.finished = true;
      },
      () => (this.finished = true),
    );
  }

  metres() {
    return null;
  }
}
