// Where to stand to see all of a set.

import { Vector3 } from '../vendor/three.min.js';

const FILLED = 0.92; // of the view, by what is to be seen
const NEAREST = 4; // metres from its middle

/** Corners of all there is to see: every thing, and the path with its cameras, drawn `length` metres long. */
export function cornersOf({ room, things }, poses, length) {
  const boxes = things.map(({ kind, x, z, radius, half_depth, height, base, yaw }) => {
    const low = room.floor - base;
    const [cos, sin] = [Math.cos(yaw), Math.sin(yaw)].map(Math.abs);
    const flat = kind === 'box' ? [cos * radius + sin * half_depth, sin * radius + cos * half_depth] : [radius, radius];
    return [x, z, ...flat, low, low - (kind === 'ball' ? 2 * radius : height)];
  });
  boxes.push(...poses.map((pose) => [pose[3], pose[11], length, length, pose[7] + length, pose[7] - length]));
  return boxes.flatMap(([x, z, wide, deep, low, high]) =>
    [-wide, wide].flatMap((i) => [-deep, deep].flatMap((j) => [low, high].map((y) => new Vector3(x + i, y, z + j)))),
  );
}

/** The place, in a direction from their middle, from which a camera sees all points. */
export function framed(points, direction, { up, fov, aspect }) {
  const back = direction.clone().normalize();
  const across = new Vector3().crossVectors(up, back).normalize();
  const down = new Vector3().crossVectors(back, across);
  const target = new Vector3();
  for (const axis of [across, down, back]) {
    const along = points.map((point) => point.dot(axis));
    target.addScaledVector(axis, (Math.min(...along) + Math.max(...along)) / 2);
  }
  const high = Math.tan((fov * Math.PI) / 360) * FILLED;
  const far = points.map((point) => {
    const from = point.clone().sub(target);
    const needed = Math.max(Math.abs(from.dot(across)) / (high * aspect), Math.abs(from.dot(down)) / high);
    return needed + from.dot(back);
  });
  return { target, place: target.clone().addScaledVector(back, Math.max(NEAREST, ...far)) };
}
