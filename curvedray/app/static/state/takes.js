// Takes: what was filmed, is being filmed and waits. The server tells of every change by events.

import { api } from './api.js';

const WAITS = 2000; // milliseconds before a broken stream is opened again, where the browser gave it up

export class Takes extends EventTarget {
  constructor() {
    super();
    Object.assign(this, { list: [], more: false, steps: new Map(), whole: new Map(), worker: null, online: true });
  }

  async begin() {
    await this.load();
    this.listen();
  }

  async load() {
    const { takes, more } = await api.takes();
    Object.assign(this, { list: takes, more });
    this.tell();
  }

  async older() {
    const { takes, more } = await api.takes(this.list.at(-1)?.take);
    this.list = [...this.list, ...takes.filter(({ take }) => !this.get(take))];
    this.more = more;
    this.tell();
  }

  get(name) {
    return this.list.find(({ take }) => take === name);
  }

  /** A take with all that belongs to it: lists and events leave out its project and its paths. Null until it is here. */
  inWhole(name) {
    const brief = this.get(name);
    const mark = `${brief.state} ${brief.verdict?.words ?? ''}`;
    const known = this.whole.get(name);
    if (known?.mark === mark) return known.take;
    this.whole.set(name, { mark, take: null });
    api.take(name).then(
      (take) => {
        this.whole.set(name, { mark, take });
        this.tell();
      },
      () => this.whole.delete(name),
    );
    return null;
  }

  get unfinished() {
    return this.list.filter(({ state }) => state === 'queued' || state === 'working').reverse();
  }

  put(take) {
    const at = this.list.findIndex((each) => each.take === take.take);
    if (at >= 0) this.list[at] = take;
    else this.list = [take, ...this.list].sort((a, b) => (a.take < b.take ? 1 : -1));
    if (take.state !== 'working') this.steps.delete(take.take);
    this.tell(take);
  }

  drop(name) {
    this.list = this.list.filter(({ take }) => take !== name);
    this.tell();
  }

  listen() {
    const stream = new EventSource('/api/events');
    const on = (name, act) => stream.addEventListener(name, (event) => act(JSON.parse(event.data)));
    on('hello', ({ worker, resumed }) => {
      Object.assign(this, { worker, online: true });
      if (!resumed) this.load().catch(() => {});
      this.tell();
    });
    on('take', (take) => this.put(take));
    on('step', (step) => {
      this.steps.set(step.take, step);
      const take = this.get(step.take);
      if (take) Object.assign(take, { step: step.step, steps: step.steps, left: step.left });
      this.tell();
    });
    on('removed', ({ take }) => this.drop(take));
    on('worker', (worker) => {
      this.worker = worker;
      this.tell();
    });
    stream.addEventListener('error', () => {
      this.online = false;
      this.tell();
      if (stream.readyState !== EventSource.CLOSED) return;
      setTimeout(() => this.listen(), WAITS);
    });
    window.addEventListener('pagehide', () => stream.close());
  }

  tell(take = null) {
    this.dispatchEvent(new CustomEvent('change', { detail: take }));
  }
}
