// The Unified Camera Model in GLSL, formula by formula as Lens.unproject (curvedray/cameras/lens.py), and the
// programs made of it: one program per mode, because a branch on a uniform saves a software rasteriser nothing.

import { sceneSource } from './glsl_scene.js';

export const vertexSource = `#version 300 es
in vec2 corner;
void main() { gl_Position = vec4(corner, 0, 1); }
`;

const lens = `#version 300 es
precision highp float;
precision highp int;
uniform vec2 focal, centre, size; // pixels
uniform vec3 bend;                // xi, and the sine and cosine of the widest angle that the lens lets through
uniform mat3 rotation;
uniform vec3 origin;
out vec4 made;

// The unit ray of a pixel, in the camera's frame; w is 1 where it exists, else 0.
vec4 unproject(vec2 pixel) {
  float xi = bend.x;
  vec2 m = (pixel - centre) / focal;
  float square = dot(m, m), inside = 1.0 + (1.0 - xi * xi) * square;
  float root = sqrt(max(inside, 0.0));
  float gamma = (xi + root) / (1.0 + square), z = (root - xi * square) / (1.0 + square);
  float off_axis = gamma * sqrt(square);
  // sin(widest - angle) >= 0; a lens without such an angle has sine 0 and cosine -1, which always passes.
  bool within = bend.z <= -1.0 || z * bend.y - off_axis * bend.z >= -1e-6;
  bool exists = inside >= 0.0 && within;
  return exists ? vec4(gamma * m, z, 1) : vec4(0, 0, 1, 0);
}
vec2 pixelHere() { return vec2(gl_FragCoord.x, size.y - gl_FragCoord.y); }
`;

const modes = {
  rays: () => 'void main() { made = unproject(pixelHere()); }',
  // Distance along the ray (0: no ray; FAR: sky), the surface's number, whether there is a ray.
  radius: () => `
void main() {
  vec4 ray = unproject(pixelHere());
  Hit hit = nearest(origin, rotation * ray.xyz);
  made = ray.w > 0.0 ? vec4(hit.distance, float(hit.surface), 1, 0) : vec4(0, -1, 0, 0);
}`,
  picture: ({ samples }) => `
vec3 sampled(vec2 pixel) {
  vec4 ray = unproject(pixel);
  vec3 d = rotation * ray.xyz;
  return ray.w * shade(nearest(origin, d), origin, d);
}
void main() {
  vec2 pixel = pixelHere();
  vec3 total = vec3(0);
${offsets(samples)
  .map(([x, y]) => `  total += sampled(pixel + vec2(${x.toFixed(6)}, ${y.toFixed(6)}));`)
  .join('\n')}
  made = vec4(total / ${(samples * samples).toFixed(1)}, 1);
}`,
  // Near is warm, far is cool, evenly in the logarithm; grey where nothing is known, black where there is no ray.
  distance: () => `
uniform sampler2D colours;
uniform vec2 limits; // logarithms of the first and the last colour's metres
void main() {
  vec4 ray = unproject(pixelHere());
  Hit hit = nearest(origin, rotation * ray.xyz);
  float share = clamp((log(hit.distance) - limits.x) / max(limits.y - limits.x, 1e-6), 0.0, 1.0);
  vec3 colour = texelFetch(colours, ivec2(int(floor(share * 255.0 + 0.5)), 0), 0).rgb;
  made = vec4(ray.w > 0.0 ? (hit.distance < 1e29 ? colour : vec3(90.0 / 255.0)) : vec3(0), 1);
}`,
};

function offsets(samples) {
  const steps = Array.from({ length: samples }, (_, i) => (i + 0.5) / samples - 0.5);
  return steps.flatMap((y) => steps.map((x) => [x, y]));
}

/** What decides the text of a program: two scenes with the same key share one. */
export function programKey(scene, mode, samples = 1) {
  const kinds = scene.things.map((thing) => thing.kind);
  const paints = {
    accents: scene.things.some((thing) => thing.accent),
    shadows: scene.room.shadows > 0,
    ink: scene.room.ink > 0,
  };
  return { kinds, paints, mode, samples: mode === 'picture' ? samples : 1 };
}

export function fragmentSource({ kinds, paints, mode, samples }) {
  return [lens, mode === 'rays' ? '' : sceneSource(kinds, paints), modes[mode]({ samples })].join('\n');
}
