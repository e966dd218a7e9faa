// What follows from a project: the scene's numbers, the path's cameras. The server alone knows moves and splines.

import { api } from './api.js';
import { Latest } from './latest.js';
import { pathBody, sceneBody } from './project.js';

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

export class Derived extends EventTarget {
  constructor(store) {
    super();
    Object.assign(this, { store, scene: null, path: null, lens: null, near: null, problems: { scene: '', path: '' } });
    this.asked = { scene: null, path: null };
    this.scenes = new Latest(
      (body) => api.scene(body),
      (scene, body) => this.gotScene(scene, body),
      (error) => this.failed('scene', error),
    );
    this.paths = new Latest(
      ({ body }) => api.path(body),
      (path, { lens }) => this.gotPath(path, lens),
      (error) => this.failed('path', error),
    );
    store.addEventListener('change', () => this.refresh());
  }

  /** Ask again for what the project's change has changed. */
  refresh() {
    const { project } = this.store;
    const { lens, clip } = project;
    const { name, hfov, xi } = lens;
    const body = {
      scene: sceneBody(project),
      lens: name ? { name } : { hfov, xi },
      width: clip.width,
      height: clip.height,
    };
    body.positions = this.positions();
    if (!same(body, this.asked.scene)) {
      this.asked.scene = body;
      this.scenes.ask(body);
    }
    this.askPath();
  }

  /** Where the camera goes: a court is made large enough for it. Blocks stay as they are. */
  positions() {
    if (this.store.project.scene.kind === 'blocks' || !this.path) return null;
    return this.path.poses.map((pose) => [pose[3], pose[7], pose[11]].map((i) => Math.round(i * 100) / 100));
  }

  askPath() {
    if (!this.scene) return; // which says the near distance, the unit of moves
    const { project } = this.store;
    if (project.path.kind === 'keys' && project.path.keys.length < 2) return;
    const body = pathBody(project, this.near.metres);
    if (same(body, this.asked.path)) return;
    this.asked.path = body;
    this.paths.ask({ body, lens: project.lens });
  }

  gotScene(scene, body) {
    this.scene = scene;
    // A court made larger for a path must not change that path in turn, so each scene keeps its first near distance.
    const of = JSON.stringify({ ...body, positions: null });
    if (this.near?.of !== of) this.near = { of, metres: scene.near };
    this.problems.scene = '';
    this.tell('scene');
    this.askPath();
  }

  gotPath(path, lens) {
    Object.assign(this, { path, lens });
    this.problems.path = '';
    this.tell('path');
    this.refresh();
  }

  failed(part, error) {
    this.problems[part] = error.message;
    this.asked[part] = null;
    this.tell('problem');
  }

  tell(part) {
    this.dispatchEvent(new CustomEvent('change', { detail: part }));
  }
}
