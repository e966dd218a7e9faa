// What is being looked at: the frame at the playhead, a camera that is flown, or one that is being dragged.

import { fromFov } from './lens.js';
import { anglesOf, poseOf } from './pose.js';

export class Shot extends EventTarget {
  constructor(store, derived) {
    super();
    Object.assign(this, { store, derived, frame: 0, playing: false, flown: null, held: null, key: null, block: null });
    derived.addEventListener('change', ({ detail }) => {
      if (detail === 'path') this.held = null;
      this.frame = Math.min(this.frame, this.frames - 1);
      this.tell('view');
    });
    store.addEventListener('change', () => {
      if (this.key !== null && this.key >= store.project.path.keys.length) this.key = null;
      if (this.block !== null && this.block >= store.project.scene.blocks.length) this.block = null;
      this.tell('view');
    });
  }

  get frames() {
    return this.derived.path?.frames ?? this.store.project.clip.frames;
  }

  /** 0..1 of the clip, for things that move. */
  get time() {
    return this.frames > 1 ? this.frame / (this.frames - 1) : 0;
  }

  get ready() {
    return this.derived.scene !== null && this.derived.path !== null;
  }

  goto(frame) {
    const next = Math.max(0, Math.min(this.frames - 1, Math.round(frame)));
    if (next === this.frame && !this.held) return;
    Object.assign(this, { frame: next, held: null });
    this.tell('view');
  }

  /** Select a keyframe (or none); the playhead goes to it. */
  select(key) {
    Object.assign(this, { key, block: null, held: null });
    const at = key === null ? null : this.derived.path?.keys?.[key];
    if (at) this.frame = Math.max(0, Math.min(this.frames - 1, Math.round(at.frame)));
    this.tell('select');
  }

  selectBlock(block) {
    Object.assign(this, { block, key: null });
    this.tell('select');
  }

  /** Look from here while a keyframe is dragged, until the server has answered. */
  hold(pose) {
    this.held = pose;
    this.tell('view');
  }

  fly(pose) {
    this.flown = pose;
    this.tell(pose ? 'view' : 'select');
  }

  get pose() {
    if (this.flown) return poseOf(this.flown);
    return this.held ?? this.derived.path.poses[this.frame];
  }

  /** Position and angles of what is seen, for a keyframe. */
  get here() {
    const { position, yaw, pitch, roll } = anglesOf(this.pose);
    const tidy = (i) => Math.round(i * 1e4) / 1e4 + 0;
    return { position: position.map(tidy), yaw: tidy(yaw), pitch: tidy(pitch), roll: tidy(roll) };
  }

  /** The lens at a frame, on an image of this size. While the dial is dragged it is ahead of the server's answer. */
  lens(width, height, frame = this.frame) {
    const { path, lens: answered } = this.derived;
    const { lens } = this.store.project;
    const [fx, fy, cx, cy, xi] = path.lenses[frame];
    const [sx, sy] = [width / path.width, height / path.height];
    if (lens !== answered && !lens.name && this.store.project.path.kind !== 'upload') {
      const [first] = path.lenses;
      const before = answered ? fromFov(answered, path.width, path.height).fx : first[0];
      if (this.store.project.path.kind === 'moves')
        return fromFov({ ...lens, zoom: (lens.zoom ?? 1) * (fx / before) }, width, height);
    }
    return { fx: fx * sx, fy: fy * sy, cx: cx * sx, cy: cy * sy, xi, max_angle: path.max_angle, size: [width, height] };
  }

  camera(width, height) {
    return { lens: this.lens(width, height), pose: this.pose };
  }

  tell(what) {
    this.dispatchEvent(new CustomEvent('change', { detail: what }));
  }
}
