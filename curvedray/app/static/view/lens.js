// The Unified Camera Model in JavaScript, for what is drawn over pictures and beside them (curvedray/cameras/lens.py).

const SENSOR = [36, 24]; // millimetres, full frame

const radians = (degrees) => (degrees * Math.PI) / 180;
const degrees = (angle) => (angle * 180) / Math.PI;

/** fx = (W/2)(cos(fov/2) + xi) / sin(fov/2): the ray fov/2 off the axis lands on the image's edge. */
export function fromFov({ hfov, xi, pan = [0, 0], zoom = 1 }, width, height, max_angle = Math.PI) {
  const half = radians(hfov) / 2;
  const focal = (zoom * (width / 2) * (Math.cos(half) + xi)) / Math.sin(half);
  const [cx, cy] = [width * (0.5 + pan[0]), height * (0.5 + pan[1])];
  return { fx: focal, fy: focal, cx, cy, xi, max_angle, size: [width, height] };
}

/** The widest field of view that a bend can have, in degrees. */
export function widestFov(xi) {
  return 2 * degrees(Math.acos(-Math.min(xi, xi > 0 ? 1 / xi : 0)));
}

/** The focal length near the axis, in millimetres of a full-frame sensor, of a lens on an image of this shape. */
export function millimetres({ hfov, xi }, width, height) {
  const half = radians(hfov) / 2;
  const pixels = ((width / 2) * (Math.cos(half) + xi)) / Math.sin(half);
  return pixels / (Math.max(width / SENSOR[0], height / SENSOR[1]) * (1 + xi));
}

/** The field of view of a focal length in millimetres: the inverse of `millimetres`. */
export function fovOfMillimetres(focal, xi, width, height) {
  const pixels = focal * Math.max(width / SENSOR[0], height / SENSOR[1]) * (1 + xi);
  const reach = width / 2 / pixels;
  const inside = 1 + (1 - xi * xi) * reach * reach;
  if (inside < 0) return widestFov(xi);
  const root = Math.sqrt(inside);
  return 2 * degrees(Math.atan2((xi + root) * reach, root - xi * reach * reach));
}

/** The same lens on an image scaled to another size. */
export function resized(lens, width, height) {
  const [sx, sy] = [width / lens.size[0], height / lens.size[1]];
  return { ...lens, fx: lens.fx * sx, fy: lens.fy * sy, cx: lens.cx * sx, cy: lens.cy * sy, size: [width, height] };
}

/** The unit ray of a pixel in the camera's frame, or null where the lens has none. */
export function unproject({ fx, fy, cx, cy, xi, max_angle }, u, v) {
  const [x, y] = [(u - cx) / fx, (v - cy) / fy];
  const square = x * x + y * y;
  const inside = 1 + (1 - xi * xi) * square;
  if (inside < 0) return null;
  const root = Math.sqrt(inside);
  const gamma = (xi + root) / (1 + square);
  const ray = [gamma * x, gamma * y, (root - xi * square) / (1 + square)];
  return Math.acos(Math.max(-1, Math.min(1, ray[2]))) <= max_angle + 1e-6 ? ray : null;
}

/** The pixel of a point in the camera's frame, or null where the lens does not see it. */
export function project({ fx, fy, cx, cy, xi, max_angle }, [x, y, z]) {
  const length = Math.hypot(x, y, z);
  if (!(length > 0)) return null;
  const least = xi > 1 ? 1 / xi : xi;
  if (z <= -least * length || Math.acos(z / length) > max_angle) return null;
  const beta = z + xi * length;
  return [(fx * x) / beta + cx, (fy * y) / beta + cy];
}

/**
 * Rays around the edge of what the lens shows: along the frame, and along the image circle where that is inside it.
 * `count` of them, in order, as a closed outline.
 */
export function outline(lens, count = 48) {
  const [width, height] = lens.size;
  const rays = [];
  for (let i = 0; i < count; i++) {
    const turn = (2 * Math.PI * i) / count;
    const [dx, dy] = [Math.cos(turn), Math.sin(turn)];
    const across = dx > 0 ? (width - lens.cx) / dx : dx < 0 ? -lens.cx / dx : Infinity;
    const down = dy > 0 ? (height - lens.cy) / dy : dy < 0 ? -lens.cy / dy : Infinity;
    let [low, high] = [0, Math.min(across, down)];
    let ray = unproject(lens, lens.cx + high * dx, lens.cy + high * dy);
    for (let step = 0; !ray && step < 24; step++) {
      const middle = (low + high) / 2;
      if (unproject(lens, lens.cx + middle * dx, lens.cy + middle * dy)) low = middle;
      else high = middle;
      if (step === 23) ray = unproject(lens, lens.cx + low * dx, lens.cy + low * dy);
    }
    rays.push(ray ?? [0, 0, 1]);
  }
  return rays;
}
