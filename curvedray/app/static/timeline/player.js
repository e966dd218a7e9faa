// Plays the clip at its own frame rate; a machine that cannot keep up leaves frames out rather than slow down.

export class Player {
  constructor(shot, store) {
    Object.assign(this, { shot, store, began: 0, from: 0 });
  }

  toggle() {
    this.shot.playing ? this.stop() : this.start();
  }

  start() {
    const { shot } = this;
    if (!shot.ready) return;
    shot.playing = true;
    this.from = shot.frame >= shot.frames - 1 ? 0 : shot.frame;
    this.began = performance.now();
    shot.tell('play');
    const next = () => {
      if (!shot.playing) return;
      const passed = Math.floor(((performance.now() - this.began) / 1000) * this.store.project.clip.fps);
      shot.goto((this.from + passed) % shot.frames);
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  }

  stop() {
    this.shot.playing = false;
    this.shot.tell('play');
  }
}
