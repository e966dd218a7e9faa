// The path from above and from the side, as a drawing: where there is no WebGL, and to compare paths.

import { h, s } from '../ui/dom.js';

const SIZE = 200;

/** Drawings of some paths on one scale: `paths` = [{points: [[x, y, z], ...], look, words}]. */
export function planOf(paths, { label }) {
  const all = paths.flatMap(({ points }) => points);
  const [cx, cy, cz] = [0, 1, 2].map((axis) => {
    const values = all.map((point) => point[axis]);
    return (Math.min(...values) + Math.max(...values)) / 2;
  });
  const reach =
    Math.max(0.25, ...all.flatMap(([x, y, z]) => [Math.abs(x - cx), Math.abs(y - cy), Math.abs(z - cz)])) * 1.2;
  const top = ([x, , z]) => [SIZE / 2 + ((x - cx) / reach) * (SIZE / 2), SIZE / 2 - ((z - cz) / reach) * (SIZE / 2)];
  const side = ([, y, z]) => [SIZE / 2 + ((z - cz) / reach) * (SIZE / 2), SIZE / 2 + ((y - cy) / reach) * (SIZE / 2)];
  return h(
    'div',
    { class: 'plans' },
    drawing('From above', paths, top, reach, label),
    drawing('From the side', paths, side, reach, label),
  );
}

function drawing(words, paths, flat, reach, label) {
  const svg = s('svg', {
    viewBox: `0 0 ${SIZE} ${SIZE}`,
    role: 'img',
    'aria-label': `${label}, ${words.toLowerCase()}`,
  });
  const step = [0.1, 0.25, 0.5, 1, 2, 5, 10].find((i) => reach / i <= 5) ?? 50;
  for (let i = -5; i <= 5; i++) {
    const x = SIZE / 2 + ((i * step) / reach) * (SIZE / 2);
    svg.append(s('path', { d: `M${x} 0V${SIZE}M0 ${x}H${SIZE}`, class: 'plan-grid' }));
  }
  for (const { points, look } of paths) {
    const flatten = points.map(flat);
    svg.append(
      s('path', {
        d: `M${flatten.map((p) => p.map((i) => i.toFixed(1)).join(' ')).join('L')}`,
        class: `plan-way ${look}`,
      }),
    );
    const [x, y] = flatten[0];
    svg.append(s('circle', { cx: x, cy: y, r: 3.2, class: `plan-start ${look}` }));
    const [u, v] = flatten.at(-1);
    svg.append(s('rect', { x: u - 3, y: v - 3, width: 6, height: 6, class: `plan-start ${look}` }));
  }
  return h('figure', { class: 'plan' }, svg, h('figcaption', {}, `${words} · squares of ${step} m`));
}

export const placesOf = (poses) => poses.map((pose) => [pose[3], pose[7], pose[11]]);

/** The stage without WebGL: the path from above and from the side. */
export class PlanStage {
  constructor(studio) {
    this.studio = studio;
    this.holder = h('div', { class: 'stage-holder plan-stage' });
    const note = h(
      'p',
      { class: 'caption warn' },
      'No WebGL: keyframes are typed in under Path, and the path is drawn flat.',
    );
    this.element = h(
      'section',
      { class: 'view stage', 'aria-label': 'Set and path' },
      h('header', {}, h('h2', {}, 'Set and path')),
      this.holder,
      h('footer', {}, note),
    );
    studio.derived.addEventListener('change', () => this.draw());
  }

  draw() {
    const { path } = this.studio.derived;
    if (path)
      this.holder.replaceChildren(planOf([{ points: placesOf(path.poses), look: 'asked' }], { label: 'The path' }));
  }
}
