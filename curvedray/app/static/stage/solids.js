// The scene's things as solids, and its court as lines, for the view from outside.

import {
  BoxGeometry,
  BufferAttribute,
  BufferGeometry,
  Color,
  CylinderGeometry,
  EdgesGeometry,
  Group,
  LineBasicMaterial,
  LineSegments,
  Mesh,
  MeshLambertMaterial,
  SphereGeometry,
} from '../vendor/three.min.js';

const FARTHEST_COURT = 60; // metres; the ground of blocks has no walls worth drawing

function shape(thing) {
  const { kind, radius, height, half_depth } = thing;
  if (kind === 'ball') return new SphereGeometry(radius, 28, 18);
  if (kind === 'pillar') return new CylinderGeometry(radius, radius, height, 32);
  return new BoxGeometry(2 * radius, height, 2 * half_depth);
}

/** A thing where it stands at a time in 0..1 of the clip. */
export function solid(thing, floor, time, { selected, accent }) {
  const group = new Group();
  const body = shape(thing);
  const colour = new Color().setRGB(...thing.colour, 'srgb');
  group.add(new Mesh(body, new MeshLambertMaterial({ color: colour })));
  const edges = selected ? new EdgesGeometry(body, 30) : null;
  if (edges) group.add(new LineSegments(edges, new LineBasicMaterial({ color: accent })));
  stand(group, thing, floor, time);
  return group;
}

export function stand(group, thing, floor, time) {
  const half = thing.kind === 'ball' ? thing.radius : thing.height / 2;
  group.position.set(thing.x + time * thing.motion[0], floor - thing.base - half, thing.z + time * thing.motion[1]);
  group.rotation.set(0, -thing.yaw, 0);
}

/** The court's walls as lines, and a floor of one-metre squares around the middle. */
export function ground(room, { line, faint }) {
  const group = new Group();
  const reach = Math.min(Math.ceil(Math.max(room.half, room.half_depth)), 12);
  const points = [];
  for (let i = -reach; i <= reach; i++) {
    points.push(i, room.floor, -reach + middle(room), i, room.floor, reach + middle(room));
    points.push(-reach, room.floor, i + middle(room), reach, room.floor, i + middle(room));
  }
  group.add(lines(points, faint));
  if (room.half < FARTHEST_COURT) group.add(lines(walls(room), line));
  return group;
}

const middle = (room) => (room.half < FARTHEST_COURT ? Math.round(room.ahead) : 4);

function walls({ half, half_depth, ahead, floor, height }) {
  const corners = [
    [-half, ahead - half_depth],
    [half, ahead - half_depth],
    [half, ahead + half_depth],
    [-half, ahead + half_depth],
  ];
  return corners.flatMap(([x, z], i) => {
    const [u, v] = corners[(i + 1) % 4];
    const top = floor - height;
    return [x, floor, z, u, floor, v, x, top, z, u, top, v, x, floor, z, x, top, z];
  });
}

export function lines(points, colour, opacity = 1) {
  const geometry = new BufferGeometry().setAttribute('position', new BufferAttribute(new Float32Array(points), 3));
  return new LineSegments(geometry, new LineBasicMaterial({ color: colour, transparent: opacity < 1, opacity }));
}
