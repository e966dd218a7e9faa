// The camera's own way, drawn over what it sees: a line through the places where it will be and has been.

import { s } from '../ui/dom.js';
import { project } from './lens.js';
import { intoCamera } from './pose.js';

const NEAREST = 0.05; // metres; what is nearer is the camera itself

/** Draw over the picture, or, without a studio, nothing. */
export function drawPath(element, studio) {
  if (!studio) return element.replaceChildren();
  const { shot, derived } = studio;
  const { width, height } = derived.path;
  const [wide, high] = [400, (400 * height) / width];
  const camera = shot.camera(wide, high);
  const seen = (point) => {
    const there = intoCamera(camera.pose, point);
    return Math.hypot(...there) < NEAREST ? null : project(camera.lens, there);
  };
  const ahead = lines(derived.path.poses.slice(shot.frame).map(place), seen);
  const behind = lines(derived.path.poses.slice(0, shot.frame + 1).map(place), seen);
  const keys = (studio.store.project.path.kind === 'keys' ? studio.store.project.path.keys : []).map(
    ({ position }, i) => {
      const at = seen(position);
      return at && s('circle', { cx: at[0], cy: at[1], r: 4, class: i === shot.key ? 'key selected' : 'key' });
    },
  );
  const drawing = s('svg', { viewBox: `0 0 ${wide} ${high}`, 'aria-hidden': 'true' });
  drawing.append(
    ...behind.map((d) => s('path', { d, class: 'way behind' })),
    ...ahead.map((d) => s('path', { d, class: 'way' })),
    ...keys.filter(Boolean),
  );
  return element.replaceChildren(drawing);
}

const place = (pose) => [pose[3], pose[7], pose[11]];

/** Unbroken lines through those points that are seen. */
function lines(points, seen) {
  const made = [];
  let now = '';
  for (const point of points) {
    const at = seen(point);
    if (at) now += `${now ? 'L' : 'M'}${at[0].toFixed(1)} ${at[1].toFixed(1)}`;
    else if (now) {
      made.push(now);
      now = '';
    }
  }
  return now ? [...made, now] : made;
}
