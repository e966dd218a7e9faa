// What a person does to keyframes, on the project: each is one step that can be undone.

import { api } from '../state/api.js';
import { pathBody } from '../state/project.js';
import { attempt, notice } from '../ui/notices.js';
import { anglesOf } from '../view/pose.js';
import { appended, inserted, lasting, moments, movedTo, removed, timed } from './keys.js';

export class PathEdits {
  constructor(studio) {
    this.studio = studio;
  }

  get path() {
    return this.studio.store.project.path;
  }

  get total() {
    const { frames, fps } = this.studio.store.project.clip;
    return (frames - 1) / fps;
  }

  /** The path as keyframes, if it is none yet; true once it is. */
  async open(count = 4) {
    const { store, derived, shot } = this.studio;
    if (this.path.kind === 'keys') return true;
    const made = await attempt(() => api.keys(pathBody(store.project, derived.path.near), count));
    if (!made) return false;
    store.edit((project) => {
      const keys = made.keys.map((key) => ({ ...key, lens: sameLens(key.lens, project.lens) ? null : key.lens }));
      Object.assign(project.path, { kind: 'keys', keys: timed(keys, this.total, false), loop: false });
    });
    shot.select(0);
    return true;
  }

  change(act, kind = null) {
    this.studio.store.edit((project) => {
      project.path.keys = act(project.path.keys, project.path.loop);
    }, kind);
  }

  /** Some of a key's numbers. */
  set(index, changes, kind = `key ${index}`) {
    this.change((keys) => keys.map((key, i) => (i === index ? { ...key, ...changes } : key)), kind);
  }

  setLens(index, changes) {
    const { lens } = this.studio.store.project;
    const key = this.path.keys[index];
    this.set(index, { lens: { ...lens, ...(key.lens ?? {}), ...changes } }, `key lens ${index}`);
  }

  /** Where the playhead is, or where one flies. */
  async addHere() {
    const { shot } = this.studio;
    const { here } = shot;
    const moment = shot.frame / this.studio.store.project.clip.fps;
    if (!(await this.open())) return;
    let at = 0;
    this.change((keys, loop) => {
      const [list, index] = inserted(keys, { ...here, lens: null }, moment, this.total, loop);
      at = index;
      return list;
    });
    shot.key = at;
    shot.tell('select');
  }

  /** Put a flown camera at the end of the path; a path in words becomes one of keyframes that begins where it began. */
  recordFlown() {
    const { shot, store, derived } = this.studio;
    const { here } = shot;
    if (this.path.kind !== 'keys') {
      const first = { ...anglesOf(derived.path.poses[0]), seconds: this.total, lens: null };
      store.edit((project) => {
        Object.assign(project.path, {
          kind: 'keys',
          keys: [first, { ...here, seconds: this.total, lens: null }],
          loop: false,
        });
      });
      notice('A new path: from where the camera began to the keyframe you recorded. Undo brings the old one back.');
    } else this.change((keys, loop) => appended(keys, { ...here, lens: null }, this.total, loop));
    shot.key = this.path.keys.length - 1;
    shot.tell('select');
    notice(`Keyframe ${shot.key + 1} recorded.`);
  }

  overwrite(index) {
    this.set(index, this.studio.shot.here, null);
    notice(`Keyframe ${index + 1} now is what you see.`);
  }

  copy(index) {
    const key = this.path.keys[index];
    this.change((keys, loop) => {
      if (!loop && index === keys.length - 1) return appended(keys, key, this.total, loop);
      const now = timed(keys, this.total, loop);
      const half = { ...now[index], seconds: now[index].seconds / 2 };
      return [...now.slice(0, index), half, structuredClone(half), ...now.slice(index + 1)];
    });
    this.studio.shot.select(index + 1);
  }

  remove(index) {
    if (this.path.keys.length <= 2) return notice('A path has at least two keyframes.', 'warning');
    this.change((keys, loop) => removed(keys, index, this.total, loop));
    return this.studio.shot.select(Math.max(0, index - 1));
  }

  moveTo(index, moment) {
    this.change((keys, loop) => movedTo(keys, index, moment, this.total, loop), `time ${index}`);
    this.studio.shot.goto(moments(this.path.keys)[index] * this.studio.store.project.clip.fps);
  }

  last(index, seconds) {
    this.change((keys, loop) => lasting(keys, index, seconds, this.total, loop), `seconds ${index}`);
  }

  shape(changes) {
    this.studio.store.edit((project) => Object.assign(project.path, changes), `shape ${Object.keys(changes)}`);
  }
}

function sameLens(a, b) {
  if (!a) return true;
  const pan = (lens) => lens.pan ?? [0, 0];
  const close = (x, y) => Math.abs(x - y) < 1e-3;
  const same = a.name && b.name ? a.name === b.name : close(a.hfov, b.hfov) && close(a.xi, b.xi);
  return same && close(pan(a)[0], pan(b)[0]) && close(pan(a)[1], pan(b)[1]) && close(a.zoom ?? 1, b.zoom ?? 1);
}
