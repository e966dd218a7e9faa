// One request at a time, the latest wins: what is asked while another is on its way waits, and replaces what waited.
// A failure is told and does not end the loop, or the last change of a drag would be lost.

export class Latest {
  /** `work(body, signal)` does it; `done(result, body)` and `failed(error, body)` are told how it went. */
  constructor(work, done, failed) {
    Object.assign(this, { work, done, failed, waiting: null, busy: false });
  }

  ask(body) {
    this.waiting = { body };
    if (!this.busy) this.run();
  }

  async run() {
    this.busy = true;
    while (this.waiting) {
      const { body } = this.waiting;
      this.waiting = null;
      try {
        const result = await this.work(body);
        this.done(result, body);
      } catch (error) {
        this.failed(error, body);
      }
    }
    this.busy = false;
  }
}

/** Call `act` once nothing was asked for `milliseconds`. */
export function debounced(act, milliseconds) {
  let timer = 0;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), milliseconds);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}
