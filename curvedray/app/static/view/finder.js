// The viewfinder: the picture through the lens, the distances in colour with their scale, the path drawn over it.

import { h, plain, withNextFrame } from '../ui/dom.js';
import { button, segmented, toggle } from '../ui/fields.js';
import { debounced } from '../state/latest.js';
import { distanceScale } from './scale.js';
import { drawPath } from './overlay.js';
import { ServerPainter, WebglPainter } from './painter.js';

const FARTHEST = 20; // metres that a distance map reaches
const WIDEST = 960; // pixels of the fine picture

export class Finder {
  constructor(studio) {
    this.studio = studio;
    this.shows = { what: 'picture', path: true, thirds: false };
    this.limits = [1, 10];
    try {
      this.painter = new WebglPainter(studio.start.colours);
    } catch {
      this.painter = new ServerPainter(studio.shot);
    }
    this.build();
    this.measureLimits = debounced(() => this.findLimits(), 250);
    studio.shot.addEventListener('change', () => this.ask());
    studio.derived.addEventListener('change', () => this.measureLimits());
    new ResizeObserver(() => this.ask()).observe(this.element);
  }

  get webgl() {
    return this.painter instanceof WebglPainter;
  }

  build() {
    this.picture = h('canvas', { role: 'img', 'aria-label': 'The picture through the lens', tabindex: -1 });
    this.distances = h('canvas', { role: 'img', 'aria-label': 'Distances in colour' });
    this.drawn = h('div', { class: 'over' });
    this.reading = h('output', { class: 'reading', 'aria-live': 'off' });
    this.scale = h('div', { class: 'scale-holder' });
    this.first = h('figure', { class: 'frame' }, this.picture, this.drawn);
    this.second = h('figure', { class: 'frame' }, this.distances, this.reading);
    this.words = h('p', { class: 'caption', 'aria-live': 'polite' });
    this.slow = h(
      'p',
      { class: 'caption warn', hidden: this.webgl },
      'No WebGL in this browser: the server draws the picture, more slowly.',
    );
    this.what = segmented(
      'Show',
      [
        ['picture', 'Picture'],
        ['distances', 'Distances'],
        ['both', 'Both'],
      ],
      () => this.shows.what,
      (value) => this.choose({ what: value }),
      { hideLabel: true },
    );
    this.overlay = toggle(
      'Path',
      () => this.shows.path,
      (path) => this.choose({ path }),
      { key: 'show the path' },
    );
    this.fly = button('Fly', () => this.studio.flying.toggle(), {
      glyph: 'fly',
      title: 'Fly the camera with the keys (F)',
    });
    this.pair = h('div', { class: 'pictures' }, this.first, h('div', { class: 'with-scale' }, this.second, this.scale));
    this.element = h(
      'section',
      { class: 'view finder', 'aria-label': 'Viewfinder' },
      h(
        'header',
        {},
        h('h2', {}, 'Viewfinder'),
        this.what.element,
        h('span', { class: 'spacer' }),
        this.overlay.element,
        this.fly,
      ),
      this.pair,
      h('footer', {}, this.words, this.slow),
    );
    this.distances.addEventListener('pointermove', (event) => this.readDistance(event));
    this.distances.addEventListener('pointerleave', () => (this.reading.textContent = ''));
    this.choose({});
  }

  choose(changes) {
    Object.assign(this.shows, changes);
    this.first.hidden = this.shows.what === 'distances';
    this.second.parentElement.hidden = this.shows.what === 'picture';
    this.pair.dataset.what = this.shows.what;
    this.what.update();
    this.ask();
  }

  ask = withNextFrame(() => this.draw());

  draw() {
    const { shot, derived } = this.studio;
    if (!shot.ready) return;
    this.fit();
    const targets = [];
    if (!this.first.hidden) targets.push({ canvas: this.picture, mode: 'picture', size: this.pixels(this.first) });
    if (!this.second.parentElement.hidden)
      targets.push({ canvas: this.distances, mode: 'distance', size: this.pixels(this.second) });
    const moving = shot.playing || this.studio.flying.moving;
    this.painter.paint(targets, derived.scene, (width, height) => shot.camera(width, height), {
      time: shot.time,
      limits: this.limits,
      moving,
    });
    this.fly.setAttribute('aria-pressed', shot.flown !== null);
    drawPath(this.drawn, this.shows.path ? this.studio : null);
    this.say();
  }

  /** The largest frames of the clip's shape that fit; the style sheet cannot know that shape. */
  fit() {
    const { width, height } = this.studio.store.project.clip;
    const both = this.shows.what === 'both';
    const room = this.pair.getBoundingClientRect();
    const strip = this.shows.what === 'picture' ? 0 : 46;
    const widest = (across, down) =>
      Math.min(
        (room.width - 8 * (across - 1)) / across,
        (((room.height - strip - 8 * (down - 1)) / down) * width) / height,
      );
    const stacked = both && widest(1, 2) > widest(2, 1);
    const wide = Math.max(80, both ? Math.max(widest(1, 2), widest(2, 1)) : widest(1, 1));
    this.pair.classList.toggle('stacked', stacked);
    for (const frame of [this.first, this.second]) {
      frame.style.width = `${Math.floor(wide)}px`;
      frame.style.height = `${Math.floor((wide * height) / width)}px`;
    }
    this.scale.style.width = `${Math.floor(wide)}px`;
    const shown = `${Math.floor(wide)} ${this.limits}`;
    if (this.scaleShown === shown) return;
    this.scaleShown = shown;
    this.scale.replaceChildren(distanceScale(this.limits, this.studio.start.colours, Math.floor(wide)));
  }

  pixels(frame) {
    const ratio = Math.min(window.devicePixelRatio || 1, WIDEST / frame.clientWidth);
    return [frame.clientWidth, frame.clientHeight].map((i) => Math.max(16, Math.round(i * ratio)));
  }

  say() {
    const { derived, shot } = this.studio;
    const { hfov, vfov, lenses } = derived.path;
    const frame = shot.flown ? 0 : shot.frame;
    const { position, yaw, pitch, roll } = shot.here;
    const where = `x ${plain(position[0])}  y ${plain(position[1])}  z ${plain(position[2])} m · yaw ${plain(yaw, 1)}° pitch ${plain(pitch, 1)}° roll ${plain(roll, 1)}°`;
    this.words.textContent = `${plain(hfov[frame], 0)}° × ${plain(vfov[frame], 0)}°, bend ${plain(lenses[frame][4])} · ${where}`;
  }

  /** The metres of the first and last colour: what the path sees at its beginning, middle and end. */
  findLimits() {
    const { shot, derived } = this.studio;
    if (!shot.ready || !this.webgl || !this.painter.caster.floats) return;
    const { path, scene } = derived;
    const seen = [0, Math.floor(path.frames / 2), path.frames - 1].flatMap((frame) =>
      this.painter.metres(
        scene,
        { lens: shot.lens(48, 32, frame), pose: path.poses[frame] },
        frame / Math.max(1, path.frames - 1),
      ),
    );
    const known = seen.filter((i) => i > 0 && i <= FARTHEST).sort((a, b) => a - b);
    if (known.length < 10) return;
    this.limits = [known[Math.floor(0.02 * known.length)], known[Math.floor(0.98 * known.length)]];
    this.ask();
  }

  readDistance(event) {
    const { shot, derived } = this.studio;
    if (!shot.ready || !this.webgl || !this.painter.caster.floats) return;
    const box = this.distances.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top].map(Math.floor);
    const lens = shot.lens(Math.round(box.width), Math.round(box.height));
    const one = { ...lens, cx: lens.cx - x, cy: lens.cy - y, size: [1, 1] };
    const [metres] = this.painter.metres(derived.scene, { lens: one, pose: shot.pose }, shot.time);
    this.reading.textContent = metres === 0 ? 'no ray' : metres > 1e29 ? 'sky' : `${plain(metres)} m`;
  }
}
