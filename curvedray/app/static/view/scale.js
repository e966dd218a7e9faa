// The strip that says which colour is how many metres.

import { plain, s } from '../ui/dom.js';

/** 1, 2 and 5 times the powers of ten between the limits; the limits themselves where there are fewer than two. */
export function ticks(low, high) {
  const inside = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const i of [1, 2, 5]) if (low <= i * 10 ** power && i * 10 ** power <= high) inside.push(i * 10 ** power);
  return inside.length > 1 ? inside : [...new Set([low, high])];
}

/** `width` in pixels, so that its words are as large as others. */
export function distanceScale([low, high], colours, width = 314) {
  const share = (metres) => (high > low ? Math.log(metres / low) / Math.log(high / low) : 0.5);
  const steps = Array.from({ length: 64 }, (_, i) => colours[Math.round((i * 255) / 63)]);
  const bars = steps.map(([r, g, b], i) =>
    s('rect', { x: (i * width) / 64, y: 2, width: width / 64 + 0.2, height: 10, fill: `rgb(${r},${g},${b})` }),
  );
  const marks = ticks(low, high).map((metres) => {
    const x = width * share(metres);
    const anchor = x < 14 ? 'start' : x > width - 14 ? 'end' : 'middle';
    return [
      s('path', { d: `M${x} 12v4`, class: 'tick' }),
      s('text', { x, y: 27, 'text-anchor': anchor }, `${plain(metres, 2)} m`),
    ];
  });
  return s(
    'svg',
    {
      viewBox: `0 0 ${width} 32`,
      class: 'scale',
      'shape-rendering': 'crispEdges',
      role: 'img',
      'aria-label': `Colours from ${plain(low)} to ${plain(high)} metres`,
    },
    bars,
    marks,
  );
}
