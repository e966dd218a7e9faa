// The project with its history: every change goes through `edit`, so that each can be undone.

const MERGE_WITHIN = 900; // milliseconds in which changes of the same kind count as one
const LONGEST_HISTORY = 200;

export class Store extends EventTarget {
  constructor(project) {
    super();
    Object.assign(this, { project, past: [], future: [], last: { kind: null, at: 0 }, saved: project });
  }

  /** Change the project. Changes of one `kind` in quick succession, such as a drag, are undone as one. */
  edit(change, kind = null) {
    const next = structuredClone(this.project);
    change(next);
    const now = performance.now();
    const merges = kind !== null && kind === this.last.kind && now - this.last.at < MERGE_WITHIN;
    if (!merges) {
      this.past.push(this.project);
      if (this.past.length > LONGEST_HISTORY) this.past.shift();
    }
    this.future = [];
    this.last = { kind, at: now };
    this.show(next);
  }

  /** A change that follows from the server's answer, and is no step of its own. */
  settle(change) {
    const next = structuredClone(this.project);
    change(next);
    this.show(next);
  }

  undo() {
    this.step(this.past, this.future);
  }

  redo() {
    this.step(this.future, this.past);
  }

  step(from, to) {
    if (!from.length) return;
    to.push(this.project);
    this.last = { kind: null, at: 0 };
    this.show(from.pop());
  }

  /** Another project, with a history of its own. */
  open(project) {
    Object.assign(this, { past: [], future: [], last: { kind: null, at: 0 }, saved: project });
    this.show(project);
  }

  markSaved() {
    this.saved = this.project;
    this.dispatchEvent(new Event('change'));
  }

  get changed() {
    return this.saved !== this.project;
  }

  show(project) {
    this.project = project;
    this.dispatchEvent(new Event('change'));
  }
}
