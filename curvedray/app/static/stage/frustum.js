// A camera drawn as what its lens sees: rays to the edge of the picture, bent as the lens bends them. A pinhole's is
// the usual pyramid; a fisheye's opens into a bowl.

import {
  BufferAttribute,
  BufferGeometry,
  DoubleSide,
  Group,
  LineBasicMaterial,
  LineSegments,
  Mesh,
  MeshBasicMaterial,
} from '../vendor/three.min.js';
import { outline, unproject } from '../view/lens.js';

const AROUND = 48; // rays around the edge
const RINGS = 4; // of the bowl, from the axis to the edge

/** Rays from the axis to the edge ray, evenly in angle: the surface between is part of a sphere. */
function towards(edge, share) {
  const angle = Math.acos(Math.max(-1, Math.min(1, edge[2]))) * share;
  const across = Math.hypot(edge[0], edge[1]) || 1;
  return [(edge[0] / across) * Math.sin(angle), (edge[1] / across) * Math.sin(angle), Math.cos(angle)];
}

/** Positions of lines: the edge, and rays to the corners (or, where a circle ends the picture, to its four sides). */
function linesOf(lens, length) {
  const edge = outline(lens, AROUND);
  const points = [];
  edge.forEach((ray, i) => points.push(...scaled(ray, length), ...scaled(edge[(i + 1) % AROUND], length)));
  const [width, height] = lens.size;
  const corners = [
    [0, 0],
    [width, 0],
    [width, height],
    [0, height],
  ].map(([u, v]) => unproject(lens, u, v));
  const spokes = corners.every(Boolean) ? corners : [0, 12, 24, 36].map((i) => edge[i]);
  for (const ray of spokes) points.push(0, 0, 0, ...scaled(ray, length));
  const up = edge[36]; // which way is up: a small mark on the upper edge
  points.push(...scaled(up, length), ...scaled(up, 1.12 * length));
  return points;
}

function bowlOf(lens, length) {
  const edge = outline(lens, AROUND);
  const points = [];
  for (let ring = 0; ring < RINGS; ring++)
    edge.forEach((ray, i) => {
      const other = edge[(i + 1) % AROUND];
      const [a, b] = [towards(ray, ring / RINGS), towards(other, ring / RINGS)];
      const [c, d] = [towards(ray, (ring + 1) / RINGS), towards(other, (ring + 1) / RINGS)];
      points.push(...scaled(a, length), ...scaled(c, length), ...scaled(d, length));
      points.push(...scaled(a, length), ...scaled(d, length), ...scaled(b, length));
    });
  return points;
}

const scaled = (ray, length) => ray.map((i) => i * length);
const geometry = (points) =>
  new BufferGeometry().setAttribute('position', new BufferAttribute(new Float32Array(points), 3));

/** The camera of a lens at a pose, `length` metres long. */
export function frustum(lens, pose, { length, colour, filled = false, opacity = 1 }) {
  const group = new Group();
  group.add(
    new LineSegments(
      geometry(linesOf(lens, length)),
      new LineBasicMaterial({ color: colour, transparent: opacity < 1, opacity }),
    ),
  );
  if (filled) {
    const paint = new MeshBasicMaterial({
      color: colour,
      transparent: true,
      opacity: 0.12,
      side: DoubleSide,
      depthWrite: false,
    });
    group.add(new Mesh(geometry(bowlOf(lens, length)), paint));
  }
  place(group, pose);
  return group;
}

export function place(object, pose) {
  object.matrixAutoUpdate = false;
  object.matrix.set(...pose);
  object.matrixWorldNeedsUpdate = true;
}

/** Give back what an object holds of the graphics card. */
export function dispose(object) {
  object.traverse((part) => {
    part.geometry?.dispose();
    part.material?.dispose();
  });
  object.removeFromParent();
}
