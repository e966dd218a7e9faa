// The set from outside: the scene, the path through it, and every camera of it shaped like its lens. Keyframes and
// blocks are dragged here. The world's y points down, so the view's up is -y.

import {
  AmbientLight,
  DirectionalLight,
  Group,
  Mesh,
  MeshBasicMaterial,
  OrbitControls,
  PerspectiveCamera,
  Raycaster,
  Scene,
  SphereGeometry,
  TransformControls,
  Vector2,
  Vector3,
  WebGLRenderer,
} from '../vendor/three.min.js';
import { h, withNextFrame } from '../ui/dom.js';
import { button, segmented } from '../ui/fields.js';
import { anglesOf, poseOf } from '../view/pose.js';
import { cornersOf, framed } from './framing.js';
import { dispose, frustum, place } from './frustum.js';
import { ground, lines, solid } from './solids.js';

const LEAST_LENGTH = 0.42; // metres of a drawn camera
const SIDE = new Vector3(-4.6, -4.5, -6.2); // whence the set is looked at first

export class Stage {
  constructor(studio) {
    this.studio = studio;
    this.tool = 'translate';
    this.canvas = h('canvas', {
      class: 'stage-canvas',
      tabindex: 0,
      'aria-label': 'The set and the path from outside. Drag to look around.',
    });
    this.renderer = new WebGLRenderer({ canvas: this.canvas, antialias: true });
    this.scene = new Scene();
    this.camera = new PerspectiveCamera(42, 1, 0.05, 400);
    this.camera.up.set(0, -1, 0);
    this.controls = new OrbitControls(this.camera, this.canvas);
    this.controls.addEventListener('change', () => this.ask());
    this.scene.add(new AmbientLight(0xffffff, 1.6));
    const sun = new DirectionalLight(0xffffff, 2);
    sun.position.set(-4.5, -7.5, -4.8);
    this.scene.add(sun);
    this.parts = {
      ground: new Group(),
      things: new Group(),
      path: new Group(),
      now: new Group(),
      handles: new Group(),
    };
    this.scene.add(...Object.values(this.parts));
    this.build();
    this.makeGizmo();
    this.pointer();
    for (const source of [studio.store, studio.derived, studio.shot])
      source.addEventListener('change', () => this.changed());
    new ResizeObserver(() => this.ask()).observe(this.holder);
    document.addEventListener('themechange', () => this.changed());
  }

  build() {
    this.holder = h('div', { class: 'stage-holder' }, this.canvas);
    this.tools = segmented(
      'Drag to',
      [
        ['translate', 'Move'],
        ['rotate', 'Turn'],
      ],
      () => this.tool,
      (tool) => this.use(tool),
      { hideLabel: true },
    );
    this.hint = h('p', { class: 'caption' });
    this.element = h(
      'section',
      { class: 'view stage', 'aria-label': 'Set and path' },
      h(
        'header',
        {},
        h('h2', {}, 'Set and path'),
        this.tools.element,
        h('span', { class: 'spacer' }),
        button('', () => this.showAll(), { glyph: 'whole', label: 'Show all' }),
        button('', () => this.fromAbove(), { glyph: 'down', label: 'Look from above' }),
      ),
      this.holder,
      h('footer', {}, this.hint),
    );
  }

  use(tool) {
    this.tool = tool;
    this.gizmo.setMode(tool);
    this.tools.update();
    this.changed();
  }

  fromAbove() {
    this.lookFrom(new Vector3(0, -1, -0.01));
  }

  showAll() {
    this.lookFrom(SIDE);
  }

  /** Look along a direction, from as far as the path and the things need. */
  lookFrom(direction) {
    this.shownAll = true;
    const { scene, path } = this.studio.derived;
    const { place, target } = framed(cornersOf(scene, path.poses, this.length()), direction, this.camera);
    this.controls.target.copy(target);
    this.camera.position.copy(place);
    this.controls.update();
  }

  /** Colours of the page's theme. */
  colours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    return {
      back: read('--stage'),
      line: read('--stage-line'),
      faint: read('--stage-faint'),
      accent: read('--accent'),
      way: read('--way'),
      key: read('--key'),
    };
  }

  changed() {
    this.stale = true;
    this.ask();
  }

  ask = withNextFrame(() => this.draw());

  draw() {
    const [width, height] = [this.holder.clientWidth, this.holder.clientHeight];
    if (!width || !height || !this.studio.shot.ready) return;
    if (this.canvas.clientWidth !== this.wide || this.canvas.clientHeight !== this.high || this.wide !== width) {
      [this.wide, this.high] = [width, height];
      this.renderer.setPixelRatio(Math.min(window.devicePixelRatio || 1, 1.5));
      this.renderer.setSize(width, height, false);
      this.camera.aspect = width / height;
      this.camera.updateProjectionMatrix();
    }
    if (!this.shownAll) this.showAll();
    if (this.stale) this.rebuild();
    this.renderer.render(this.scene, this.camera);
  }

  rebuild() {
    this.stale = false;
    const { derived, shot, store } = this.studio;
    const colours = this.colours();
    for (const part of Object.values(this.parts)) for (const child of [...part.children]) dispose(child);
    this.renderer.setClearColor(colours.back);
    const { room, things } = derived.scene;
    this.parts.ground.add(ground(room, colours));
    things.forEach((thing, i) => {
      const made = solid(thing, room.floor, shot.time, {
        selected: derived.scene.kind === 'blocks' && i === shot.block,
        accent: colours.accent,
      });
      made.userData.block = derived.scene.kind === 'blocks' ? i : null;
      this.parts.things.add(made);
    });
    this.drawPath(colours);
    const keyed = store.project.path.kind === 'keys';
    const what = [keyed && 'a keyframe', derived.scene.kind === 'blocks' && 'a block'].filter(Boolean).join(' or ');
    this.hint.textContent = what
      ? `Drag ${what} along the floor, with Shift up and down; arrows move or turn the selected one.`
      : 'Drag to look around, scroll to come nearer. To drag the path, edit it as keyframes (below).';
    this.aimGizmo();
  }

  /** How long a camera is drawn: in proportion to how far the path goes. */
  length() {
    const places = this.studio.derived.path.poses.map((pose) => new Vector3(pose[3], pose[7], pose[11]));
    const reach = Math.max(...places.map((place) => place.distanceTo(places[0])));
    return Math.max(LEAST_LENGTH, Math.min(0.9, 0.3 * reach));
  }

  drawPath(colours) {
    const { derived, shot, store } = this.studio;
    const { path } = derived;
    const length = this.length();
    const points = [];
    path.poses.slice(1).forEach((pose, i) => points.push(...at(path.poses[i]), ...at(pose)));
    if (points.length) this.parts.path.add(lines(points, colours.way));
    const small = (frame) => shot.lens(path.width, path.height, frame);
    const keys = store.project.path.kind === 'keys' ? store.project.path.keys : [];
    if (keys.length)
      keys.forEach((key, i) => {
        const frame = Math.max(0, Math.min(path.frames - 1, Math.round(path.keys?.[i]?.frame ?? 0)));
        const chosen = i === shot.key;
        const colour = chosen ? colours.accent : colours.key;
        this.parts.path.add(frustum(small(frame), poseOf(key), { length, colour, opacity: chosen ? 1 : 0.75 }));
        const ball = new Mesh(
          new SphereGeometry(0.16 * length + 0.03, 16, 12),
          new MeshBasicMaterial({ color: colour }),
        );
        ball.position.set(...key.position);
        ball.userData.key = i;
        this.parts.handles.add(ball);
      });
    else
      for (const share of [0, 0.25, 0.5, 0.75, 1]) {
        const frame = Math.round(share * (path.frames - 1));
        this.parts.path.add(
          frustum(small(frame), path.poses[frame], { length: 0.7 * length, colour: colours.key, opacity: 0.55 }),
        );
      }
    this.parts.now.add(
      frustum(small(shot.frame), shot.pose, { length: 1.15 * length, colour: colours.accent, filled: true }),
    );
  }

  // -- dragging

  makeGizmo() {
    this.held = new Group();
    this.scene.add(this.held);
    this.gizmo = new TransformControls(this.camera, this.canvas);
    this.gizmo.setSize(0.8);
    this.gizmo.setSpace('world');
    this.scene.add(this.gizmo.getHelper());
    this.gizmo.addEventListener('change', () => this.ask());
    this.gizmo.addEventListener('dragging-changed', ({ value }) => (this.controls.enabled = !value));
    this.gizmo.addEventListener('objectChange', () => this.moved());
  }

  aimGizmo() {
    const { shot, store, derived } = this.studio;
    if (this.gizmo.dragging) return;
    const key = shot.key !== null ? store.project.path.keys[shot.key] : null;
    const block = shot.block !== null ? store.project.scene.blocks[shot.block] : null;
    this.gizmo.showX = this.gizmo.showZ = key !== null || this.tool === 'translate'; // a block turns about the vertical
    if (store.project.path.kind === 'keys' && key) {
      this.held.matrixAutoUpdate = true;
      place(this.held, poseOf(key));
      this.held.matrix.decompose(this.held.position, this.held.quaternion, this.held.scale);
      this.held.matrixAutoUpdate = true;
      this.gizmo.setSpace(this.tool === 'rotate' ? 'local' : 'world');
      this.gizmo.attach(this.held);
    } else if (block && derived.scene.kind === 'blocks') {
      this.held.matrixAutoUpdate = true;
      this.held.position.set(block.right, derived.scene.room.floor - block.up, block.ahead);
      this.held.rotation.set(0, (-block.turned * Math.PI) / 180, 0);
      this.gizmo.setSpace('world');
      this.gizmo.attach(this.held);
    } else this.gizmo.detach();
  }

  moved() {
    const { shot, edits } = this.studio;
    const tidy = (i) => Math.round(i * 1e3) / 1e3;
    if (shot.key !== null) {
      this.held.updateMatrix();
      const e = this.held.matrix.elements;
      const pose = [e[0], e[4], e[8], e[12], e[1], e[5], e[9], e[13], e[2], e[6], e[10], e[14], 0, 0, 0, 1];
      const { position, yaw, pitch, roll } = anglesOf(pose);
      edits.set(shot.key, { position: position.map(tidy), yaw: tidy(yaw), pitch: tidy(pitch), roll: tidy(roll) });
      shot.hold(pose);
    } else if (shot.block !== null) {
      const { x, y, z } = this.held.position;
      const turned =
        this.tool === 'rotate'
          ? { turned: tidy((-2 * Math.atan2(this.held.quaternion.y, this.held.quaternion.w) * 180) / Math.PI) }
          : {};
      this.studio.blocks.set(shot.block, {
        right: tidy(x),
        up: Math.max(0, tidy(this.studio.derived.scene.room.floor - y)),
        ahead: tidy(z),
        ...turned,
      });
    }
  }

  /** A click selects; a drag on a keyframe's ball or on a block moves it in the level plane, with Shift up and down. */
  pointer() {
    const caster = new Raycaster();
    const aim = (event) => {
      const box = this.canvas.getBoundingClientRect();
      caster.setFromCamera(
        new Vector2(((event.clientX - box.left) / box.width) * 2 - 1, 1 - ((event.clientY - box.top) / box.height) * 2),
        this.camera,
      );
    };
    const found = (event) => {
      aim(event);
      const [hit] = caster.intersectObjects([...this.parts.handles.children, ...this.parts.things.children], true);
      for (let part = hit?.object; part; part = part.parent) {
        if (part.userData.key !== undefined) return { key: part.userData.key };
        if (part.userData.block !== undefined && part.userData.block !== null) return { block: part.userData.block };
      }
      return null;
    };
    /** Where the pointer's ray meets the level plane at this height; null far away. */
    const level = (y) => {
      const { origin, direction } = caster.ray;
      const far = (y - origin.y) / direction.y;
      return far > 0 && far < 200 ? [origin.x + far * direction.x, y, origin.z + far * direction.z] : null;
    };
    let drag = null;
    this.canvas.addEventListener(
      'pointerdown',
      (event) => {
        const hit = found(event);
        if (!hit || !this.yields(hit)) return;
        event.stopImmediatePropagation();
        this.controls.enabled = false;
        this.canvas.setPointerCapture(event.pointerId);
        if (hit.key !== undefined) this.studio.shot.select(hit.key);
        else this.studio.shot.selectBlock(hit.block);
        const start = this.placeOf(hit);
        drag = { ...hit, start, y: event.clientY, grip: level(start[1]) ?? start };
      },
      { capture: true },
    );
    this.canvas.addEventListener('pointermove', (event) => {
      if (!drag) return;
      aim(event);
      const { start, grip } = drag;
      const position = [...start];
      const here = level(start[1]);
      if (event.shiftKey)
        position[1] += ((event.clientY - drag.y) * caster.ray.origin.distanceTo(new Vector3(...start))) / this.high;
      else if (here) [0, 2].forEach((i) => (position[i] += here[i] - grip[i]));
      this.dragTo(
        drag,
        position.map((i) => Math.round(i * 1e3) / 1e3),
      );
    });
    const end = () => {
      if (drag) this.controls.enabled = true;
      drag = null;
    };
    this.canvas.addEventListener('pointerup', end);
    this.canvas.addEventListener('pointercancel', end);
  }

  /** Whether what lies under the arrows of the selected one is dragged, and not they. */
  yields({ key, block }) {
    const { axis } = this.gizmo;
    const another = key !== undefined ? key !== this.studio.shot.key : block !== this.studio.shot.block;
    const arrow = axis === 'X' || axis === 'Z' || this.tool === 'rotate'; // the others would cover a block of usual size
    return axis === null || (another && key !== undefined) || (block !== undefined && !another && !arrow);
  }

  placeOf({ key, block }) {
    const { project } = this.studio.store;
    if (key !== undefined) return project.path.keys[key].position;
    const { right, up, ahead } = project.scene.blocks[block];
    return [right, this.studio.derived.scene.room.floor - up, ahead];
  }

  dragTo({ key, block }, position) {
    const { edits, shot, blocks, derived, store } = this.studio;
    if (key !== undefined) {
      edits.set(key, { position });
      shot.hold(poseOf(store.project.path.keys[key]));
    } else
      blocks.set(block, {
        right: position[0],
        up: Math.max(0, derived.scene.room.floor - position[1]),
        ahead: position[2],
      });
  }
}

const at = (pose) => [pose[3], pose[7], pose[11]];
