// Poses as 16 numbers row by row, world from camera; x right, y down, z forward (curvedray/cameras/angles.py).

const radians = (degrees) => (degrees * Math.PI) / 180;
const degrees = (angle) => (angle * 180) / Math.PI;

/** Ry(yaw) Rx(pitch) Rz(roll): yaw right, pitch up, roll clockwise, in degrees. */
export function poseOf({ position, yaw, pitch, roll }) {
  const [cy, sy] = [Math.cos(radians(yaw)), Math.sin(radians(yaw))];
  const [cp, sp] = [Math.cos(radians(pitch)), Math.sin(radians(pitch))];
  const [cr, sr] = [Math.cos(radians(roll)), Math.sin(radians(roll))];
  const [x, y, z] = position;
  return [
    cy * cr + sy * sp * sr,
    sy * sp * cr - cy * sr,
    sy * cp,
    x,
    cp * sr,
    cp * cr,
    -sp,
    y,
    cy * sp * sr - sy * cr,
    sy * sr + cy * sp * cr,
    cy * cp,
    z,
    0,
    0,
    0,
    1,
  ];
}

/** Position and angles of a pose: the inverse of `poseOf`. */
export function anglesOf(pose) {
  return {
    position: [pose[3], pose[7], pose[11]],
    yaw: degrees(Math.atan2(pose[2], pose[10])),
    pitch: -degrees(Math.asin(Math.max(-1, Math.min(1, pose[6])))),
    roll: degrees(Math.atan2(pose[4], pose[5])),
  };
}

/** A point of the world in the camera's frame. */
export function intoCamera(pose, [x, y, z]) {
  const [dx, dy, dz] = [x - pose[3], y - pose[7], z - pose[11]];
  return [0, 1, 2].map((i) => pose[i] * dx + pose[4 + i] * dy + pose[8 + i] * dz);
}

/** A point of the camera's frame in the world. */
export function intoWorld(pose, [x, y, z]) {
  return [0, 4, 8].map((row) => pose[row] * x + pose[row + 1] * y + pose[row + 2] * z + pose[row + 3]);
}
