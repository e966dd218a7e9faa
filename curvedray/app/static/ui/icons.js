// Drawn icons, 20 x 20, in the colour of the text around them.

import { s } from './dom.js';

const PATHS = {
  play: 'M6 4l10 6-10 6z',
  pause: 'M6 4h3v12H6zM11 4h3v12h-3z',
  undo: 'M8 5L4 9l4 4M4 9h7a5 5 0 0 1 0 10h-1',
  redo: 'M12 5l4 4-4 4M16 9H9a5 5 0 0 0 0 10h1',
  plus: 'M10 4v12M4 10h12',
  copy: 'M7 7h9v9H7zM4 13V4h9',
  trash: 'M4 6h12M8 6V4h4v2M6 6l1 11h6l1-11',
  pin: 'M10 3a5 5 0 0 1 5 5c0 4-5 9-5 9S5 12 5 8a5 5 0 0 1 5-5z',
  loop: 'M15 7a6 6 0 1 0 1 5M16 3v4h-4',
  eye: 'M2 10s3-5 8-5 8 5 8 5-3 5-8 5-8-5-8-5zM10 7.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z',
  fly: 'M3 10l14-6-5 13-3-5z',
  close: 'M5 5l10 10M15 5L5 15',
  heart: 'M3 10h3l2-5 4 10 2-5h3',
  sun: 'M10 6a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM10 1v2M10 17v2M1 10h2M17 10h2M4 4l1 1M15 15l1 1M4 16l1-1M15 5l1-1',
  help: 'M7 8a3 3 0 1 1 4 3c-1 .5-1 1-1 2M10 16v.5',
  dice: 'M4 4h12v12H4zM7.5 7.5h.01M12.5 12.5h.01M10 10h.01',
  left: 'M12 5l-5 5 5 5',
  right: 'M8 5l5 5-5 5',
  up: 'M5 12l5-5 5 5',
  down: 'M5 8l5 5 5-5',
  whole: 'M3 7V3h4M13 3h4v4M17 13v4h-4M7 17H3v-4',
  film: 'M3 4h14v12H3zM6 4v12M14 4v12M3 8h3M3 12h3M14 8h3M14 12h3',
  box: 'M4 7l6-3 6 3v7l-6 3-6-3zM4 7l6 3 6-3M10 10v7',
  ball: 'M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM5 8c2 2 8 2 10 0',
  pillar: 'M6 5c0-2.5 8-2.5 8 0v10c0 2.5-8 2.5-8 0zM6 5c0 2.5 8 2.5 8 0',
  wall: 'M3 5h14v10H3zM3 10h14M8 5v5M12 10v5',
};
const FILLED = new Set(['play', 'pause']);

export function icon(name) {
  const shape = FILLED.has(name) ? { fill: 'currentColor' } : { fill: 'none', stroke: 'currentColor' };
  return s(
    'svg',
    { viewBox: '0 0 20 20', class: 'icon', 'aria-hidden': 'true' },
    s('path', { d: PATHS[name], 'stroke-width': 1.6, 'stroke-linecap': 'round', 'stroke-linejoin': 'round', ...shape }),
  );
}
