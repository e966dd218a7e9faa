// Flying the camera: keys or a drag on the picture move it freely, Enter records a keyframe, Escape comes back.

import { h } from '../ui/dom.js';
import { button } from '../ui/fields.js';

const SPEED = 1.6; // metres per second; Shift is three times as fast
const TURN = 45; // degrees per second
const HELD = {
  KeyW: [0, 0, 1],
  KeyS: [0, 0, -1],
  KeyA: [-1, 0, 0],
  KeyD: [1, 0, 0],
  KeyE: [0, -1, 0],
  KeyQ: [0, 1, 0],
};
const TURNED = {
  ArrowLeft: ['yaw', -1],
  ArrowRight: ['yaw', 1],
  ArrowUp: ['pitch', 1],
  ArrowDown: ['pitch', -1],
  KeyZ: ['roll', -1],
  KeyC: ['roll', 1],
};

export class Flying {
  constructor(studio) {
    this.studio = studio;
    this.down = new Set();
    this.help = h(
      'div',
      { class: 'flying', hidden: true, role: 'toolbar', 'aria-label': 'Flying' },
      h('span', {}, 'W A S D to go, E Q up and down, arrows to look, Z C to roll'),
      button('Record keyframe', () => studio.edits.recordFlown(), {
        look: 'primary small',
        title: 'Record a keyframe (Enter)',
      }),
      button('Done', () => this.leave(), { look: 'small', title: 'Back to the path (Escape)' }),
    );
    window.addEventListener('keydown', (event) => this.press(event));
    window.addEventListener('keyup', (event) => this.down.delete(event.code));
    window.addEventListener('blur', () => this.down.clear());
  }

  get on() {
    return this.studio.shot.flown !== null;
  }

  get moving() {
    return this.on && this.down.size > 0;
  }

  /** Over the picture: a drag looks around, the wheel goes ahead and back. */
  attach(frame) {
    frame.append(this.help);
    frame.addEventListener('pointerdown', (event) => {
      if (!this.on || event.target.closest('button')) return;
      frame.setPointerCapture(event.pointerId);
    });
    frame.addEventListener('pointermove', (event) => {
      if (!this.on || !frame.hasPointerCapture(event.pointerId)) return;
      const { yaw, pitch } = this.studio.shot.flown;
      const perPixel = 90 / frame.clientWidth;
      this.turn({ yaw: yaw - event.movementX * perPixel, pitch: pitch + event.movementY * perPixel });
    });
    frame.addEventListener(
      'wheel',
      (event) => {
        if (!this.on) return;
        event.preventDefault();
        this.go([0, 0, -Math.sign(event.deltaY) * 0.15]);
      },
      { passive: false },
    );
  }

  toggle() {
    if (this.on) return this.leave();
    const { shot, player } = this.studio;
    if (!shot.ready) return undefined;
    if (shot.playing) player.stop();
    shot.fly(shot.here);
    this.help.hidden = false;
    this.last = performance.now();
    document.activeElement?.blur();
    return this.loop();
  }

  leave() {
    this.down.clear();
    this.help.hidden = true;
    this.studio.shot.fly(null);
  }

  press(event) {
    if (!this.on || event.target.closest('input, textarea, select, dialog') || event.ctrlKey || event.metaKey) return;
    if (event.key === 'Escape') this.leave();
    else if (event.key === 'Enter' && !event.target.closest('button')) this.studio.edits.recordFlown();
    else if (HELD[event.code] || TURNED[event.code] || event.key === 'Shift') this.down.add(event.code);
    else return;
    event.preventDefault();
  }

  loop() {
    requestAnimationFrame((now) => {
      if (!this.on) return;
      const passed = Math.min(0.1, (now - this.last) / 1000);
      this.last = now;
      this.advance(passed);
      this.loop();
    });
  }

  advance(passed) {
    const fast = this.down.has('ShiftLeft') || this.down.has('ShiftRight') ? 3 : 1;
    const way = [0, 0, 0];
    for (const code of this.down) HELD[code]?.forEach((part, i) => (way[i] += part * SPEED * fast * passed));
    const turned = {};
    for (const code of this.down) {
      const [angle, sign] = TURNED[code] ?? [];
      if (angle) turned[angle] = (turned[angle] ?? this.studio.shot.flown[angle]) + sign * TURN * passed;
    }
    if (Object.keys(turned).length) this.turn(turned);
    if (way.some(Boolean)) this.go(way);
    if (this.wasMoving && !this.moving) this.studio.shot.tell('view'); // so that the fine picture follows
    this.wasMoving = this.moving;
  }

  turn(changes) {
    const next = { ...this.studio.shot.flown, ...changes };
    next.pitch = Math.max(-89, Math.min(89, next.pitch));
    next.yaw = ((((next.yaw + 180) % 360) + 360) % 360) - 180;
    this.studio.shot.fly(next);
  }

  /** Along the level direction of view, sideways, and straight up or down. */
  go([right, down, ahead]) {
    const { flown } = this.studio.shot;
    const yaw = (flown.yaw * Math.PI) / 180;
    const [x, y, z] = flown.position;
    const position = [
      x + right * Math.cos(yaw) + ahead * Math.sin(yaw),
      y + down,
      z - right * Math.sin(yaw) + ahead * Math.cos(yaw),
    ];
    position[1] = Math.min(position[1], this.studio.derived.scene.room.floor - 0.1);
    this.studio.shot.fly({ ...flown, position });
  }
}
