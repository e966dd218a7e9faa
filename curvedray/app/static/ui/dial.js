// The lens dial: an arc from the narrowest to the widest view, dragged, scrolled or stepped with the arrow keys.
// The wedge inside it is the view itself, seen from above.

import { clamp, h, s } from './dom.js';

const [FROM, TO] = [-135, 135]; // degrees of the dial's own turn, 0 is up
const RADIUS = 64;

const point = (turn, radius) => {
  const angle = ((turn - 90) * Math.PI) / 180;
  return [100 + radius * Math.cos(angle), 84 + radius * Math.sin(angle)];
};
const arc = (from, to, radius) => {
  const [[x, y], [u, v]] = [point(from, radius), point(to, radius)];
  return `M${x} ${y}A${radius} ${radius} 0 ${to - from > 180 ? 1 : 0} 1 ${u} ${v}`;
};

/** `get`/`set(value, done)` in degrees of view; `words(value)` is what is written in the middle. */
export function dial(label, get, set, { min = 20, max = () => 235, words }) {
  const track = s('path', { d: arc(FROM, TO, RADIUS), class: 'dial-track' });
  const reach = s('path', { class: 'dial-reach' });
  const wedge = s('path', { class: 'dial-wedge' });
  const knob = s('circle', { r: 7, class: 'dial-knob' });
  const big = s('text', { x: 100, y: 84, class: 'dial-big' });
  const small = s('text', { x: 100, y: 102, class: 'dial-small' });
  const drawing = s('svg', { viewBox: '0 0 200 152', 'aria-hidden': 'true' }, track, wedge, reach, knob, big, small);
  const element = h(
    'div',
    { class: 'dial', role: 'slider', tabindex: 0, 'aria-label': label, 'data-key': label },
    drawing,
  );
  const turnOf = (value) => FROM + ((value - min) / (235 - min)) * (TO - FROM);
  const give = (value, done) => set(clamp(Math.round(value * 2) / 2, min, max()), done);

  const update = () => {
    const value = get();
    const turn = turnOf(clamp(value, min, 235));
    reach.setAttribute('d', arc(FROM, Math.max(turn, FROM + 0.1), RADIUS));
    const half = value / 2;
    const [[x, y], [u, v]] = [point(-half, 50), point(half, 50)];
    wedge.setAttribute('d', `M100 84L${x} ${y}A50 50 0 ${half > 90 ? 1 : 0} 1 ${u} ${v}Z`);
    const [cx, cy] = point(turn, RADIUS);
    knob.setAttribute('cx', cx);
    knob.setAttribute('cy', cy);
    [big.textContent, small.textContent] = words(value);
    for (const [name, number] of [
      ['valuenow', value],
      ['valuemin', min],
      ['valuemax', Math.floor(max())],
    ])
      element.setAttribute(`aria-${name}`, number);
    element.setAttribute('aria-valuetext', words(value).join(', '));
  };

  const fromPointer = (event) => {
    const box = drawing.getBoundingClientRect();
    const scale = 200 / box.width;
    const [x, y] = [(event.clientX - box.left) * scale - 100, (event.clientY - box.top) * scale - 84];
    const turn = clamp((Math.atan2(x, -y) * 180) / Math.PI, FROM, TO);
    return min + ((turn - FROM) / (TO - FROM)) * (235 - min);
  };
  element.addEventListener('pointerdown', (event) => {
    element.setPointerCapture(event.pointerId);
    give(fromPointer(event), false);
  });
  element.addEventListener('pointermove', (event) => {
    if (element.hasPointerCapture(event.pointerId)) give(fromPointer(event), false);
  });
  element.addEventListener('pointerup', () => give(get(), true));
  element.addEventListener('keydown', (event) => {
    const step = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10 }[event.key];
    const to = { Home: min, End: max() }[event.key];
    if (step === undefined && to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    give(to ?? get() + step, true);
  });
  element.addEventListener(
    'wheel',
    (event) => {
      event.preventDefault();
      give(get() - Math.sign(event.deltaY) * 2, true);
    },
    { passive: false },
  );
  update();
  return { element, update };
}
