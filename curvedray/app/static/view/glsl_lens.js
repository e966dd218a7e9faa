// The Unified Camera Model in GLSL, formula by formula as Lens.unproject (curvedray/cameras/lens.py), and the
// programs made of it: one program per mode, because a branch on a uniform saves a software rasteriser nothing.

import { meetsScene, paintsScene } from './glsl_scene.js';

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

const rays = 'void main() { made = unproject(pixelHere()); }';

// Distance along the ray (0: no ray; FAR: sky), the surface's number, whether there is a ray.
const radius = `
void main() {
  vec4 ray = unproject(pixelHere());
  Hit hit = nearest(origin, rotation * ray.xyz);
  made = ray.w > 0.0 ? vec4(hit.distance, float(hit.surface), 1, 0) : vec4(0, -1, 0, 0);
}`;

const picture = `
void main() {
  vec4 ray = unproject(pixelHere());
  vec3 d = rotation * ray.xyz;
  made = vec4(ray.w * shade(nearest(origin, d), origin, d), 1);
}`;

// Near is warm, far is cool, evenly in the logarithm; grey where nothing is known, black where there is no ray.
const distance = `
uniform sampler2D colours;
uniform vec2 limits; // logarithms of the first and the last colour's metres
void main() {
  vec4 ray = unproject(pixelHere());
  Hit hit = nearest(origin, rotation * ray.xyz);
  float share = clamp((log(hit.distance) - limits.x) / max(limits.y - limits.x, 1e-6), 0.0, 1.0);
  vec3 colour = texelFetch(colours, ivec2(int(floor(share * 255.0 + 0.5)), 0), 0).rgb;
  made = vec4(ray.w > 0.0 ? (hit.distance < 1e29 ? colour : vec3(90.0 / 255.0)) : vec3(0), 1);
}`;

/** The program of each mode, whatever stands in the scene. */
export const fragmentSources = {
  rays: lens + rays,
  radius: lens + meetsScene + radius,
  picture: lens + meetsScene + paintsScene + picture,
  distance: lens + meetsScene + distance,
};
