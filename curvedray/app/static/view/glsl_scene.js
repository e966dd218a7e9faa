// The ray-caster's geometry and paints in GLSL, a line-by-line twin of curvedray/world/raycast.py and shading.py.
//
// The things of a scene are data, read in loops, balls first, then pillars, then boxes: a block that is added, moved or
// taken away changes numbers and compiles nothing, which would take seconds without a graphics card. Surfaces are
// numbered as in scene.py: walls +z, +x, -z, -x are 0..3, the floor 4, the sky 5, things from 6 on.

export const MOST_THINGS = 64;
export const FIRST_THING = 6; // the number of the first thing's surface
export const ORDER = ['ball', 'pillar', 'box'];

const declarations = `
const float FAR = 1e30;
const vec3 SUN = vec3(-0.45, -0.75, -0.4848);
uniform vec3 walls[4], stripes[4], tiles[2], sky[2];
uniform vec4 court;    // half, half depth, ahead, floor
uniform vec4 painted;  // height, spacing, stripe, softness
uniform vec3 inked;    // ink, shadows, whether anything has an accent
uniform ivec3 upTo;    // the things before these numbers are balls, then pillars, then boxes
struct Thing {
  vec4 place;  // x, floor, z, radius
  vec4 shape;  // height, half depth, cos, sin
  vec4 colour; // and the number of its surface
  vec4 accent;
};
layout(std140) uniform Things { Thing things[${MOST_THINGS}]; };
struct Hit { float distance; int surface; int thing; };
`;

const meet = `
float toBall(vec4 place, vec3 o, vec3 d) {
  vec3 c = vec3(place.x, place.y - place.w, place.z) - o;
  float along = dot(c, d);
  float under = along * along - (dot(c, c) - place.w * place.w);
  return under < 0.0 ? FAR : along - sqrt(max(under, 0.0));
}
float toPillar(vec4 place, vec4 shape, vec3 o, vec3 d) {
  float top = place.y - shape.x;
  vec2 c = place.xz - o.xz;
  float flat_ = dot(d.xz, d.xz), along = dot(d.xz, c);
  float under = along * along - flat_ * (dot(c, c) - place.w * place.w);
  float side = (along - sqrt(max(under, 0.0))) / flat_;
  bool raised = place.y < court.w;
  if (under < 0.0 || side * d.y < top - o.y || !(side > 0.0)) side = FAR;
  if (raised && side * d.y > place.y - o.y) side = FAR;
  float lid = (top - o.y) / d.y;
  vec2 on = lid * d.xz - c;
  if (o.y >= top || dot(on, on) > place.w * place.w || !(lid > 0.0)) lid = FAR;
  float base = (place.y - o.y) / d.y;
  on = base * d.xz - c;
  if (!raised || o.y <= place.y || dot(on, on) > place.w * place.w || !(base > 0.0)) base = FAR;
  return min(min(side, lid), base);
}
float toBox(vec4 place, vec4 shape, vec3 o, vec3 d) {
  vec3 c = vec3(place.x, place.y - shape.x / 2.0, place.z) - o;
  vec3 turned = vec3(shape.z * d.x + shape.w * d.z, d.y, shape.z * d.z - shape.w * d.x);
  vec3 centre = vec3(shape.z * c.x + shape.w * c.z, c.y, shape.z * c.z - shape.w * c.x);
  vec3 half_ = vec3(place.w, shape.x / 2.0, shape.y);
  vec3 inverse_ = 1.0 / turned;
  vec3 one = inverse_ * (centre - half_), other = inverse_ * (centre + half_);
  vec3 near = min(one, other), far = max(one, other);
  float enter = max(near.x, max(near.y, near.z)), leave = min(far.x, min(far.y, far.z));
  return enter > leave ? FAR : enter;
}`;

const LOOPS = [
  ['0', 'upTo.x', 'toBall(things[i].place, o, d)'],
  ['upTo.x', 'upTo.y', 'toPillar(things[i].place, things[i].shape, o, d)'],
  ['upTo.y', 'upTo.z', 'toBox(things[i].place, things[i].shape, o, d)'],
];

const nearest = `
Hit nearest(vec3 o, vec3 d) {
  Hit hit = Hit(FAR, 5, 0);
  float to_z = ((d.z < 0.0 ? -court.y : court.y) + (court.z - o.z)) / d.z;
  float to_x = ((d.x < 0.0 ? -court.x : court.x) - o.x) / d.x;
  hit.surface = to_x < to_z ? (d.x < 0.0 ? 3 : 1) : (d.z < 0.0 ? 2 : 0);
  hit.distance = min(to_z, to_x);
  if (hit.distance * d.y < court.w - painted.x - o.y) { hit.distance = FAR; hit.surface = 5; }
  float t = (court.w - o.y) / d.y;
  if (t > 0.0 && t < hit.distance) { hit.distance = t; hit.surface = 4; }
  int met = -1;
${LOOPS.map(
  ([from, to, met]) => `
  for (int i = ${from}; i < ${to}; i++) {
    t = ${met};
    if (t > 0.0 && t < hit.distance) { hit.distance = t; met = i; }
  }`,
).join('')}
  if (met >= 0) { hit.thing = met; hit.surface = int(things[met].colour.w); }
  return hit;
}`;

const normals = `
vec3 normalAt(Hit hit, vec3 p) {
  vec4 place = things[hit.thing].place, shape = things[hit.thing].shape;
  vec3 q = p - place.xyz;
  if (hit.thing < upTo.x) return vec3(q.x, q.y + place.w, q.z) / place.w;
  if (q.y < -shape.x * (1.0 - 1e-4)) return vec3(0, -1, 0);
  if (hit.thing < upTo.y) return vec3(q.x, 0, q.z) / place.w;
  float a = shape.z * q.x + shape.w * q.z, b = shape.z * q.z - shape.w * q.x;
  bool by_a = abs(a) * (shape.y / place.w) > abs(b);
  a = by_a ? sign(a) : 0.0;
  b = by_a ? 0.0 : sign(b);
  return vec3(shape.z * a - shape.w * b, 0, shape.w * a + shape.z * b);
}`;

// Accents: gores on a ball, a framed edge on a box, rings on a pillar.
const patterns = `
float patternAt(Hit hit, vec3 p, vec3 n) {
  vec4 place = things[hit.thing].place, shape = things[hit.thing].shape;
  float height = place.y - p.y;
  if (hit.thing < upTo.x) return clamp(4.0 * cos(4.0 * atan(n.z, n.x)) + 0.5, 0.0, 1.0);
  if (hit.thing < upTo.y) return clamp(8.0 * cos(height * 7.853981634) - 4.0, 0.0, 1.0);
  vec2 q = p.xz - place.xz;
  vec3 side = abs(vec3(shape.z * q.x + shape.w * q.y,
    (shape.z * q.y - shape.w * q.x) * (place.w / shape.y),
    (height - shape.x / 2.0) * (2.0 * place.w / shape.x)));
  float second = max(min(side.x, side.y), min(max(side.x, side.y), side.z));
  return clamp((second / place.w - 0.82) * 30.0, 0.0, 1.0);
}`;

const between = `
bool slabs(float enter, float leave, float middle, float half_) {
  return min(leave, (middle - half_) / SUN.y) > max(max(enter, (middle + half_) / SUN.y), 1e-3);
}
bool ballHides(vec4 place, vec3 p) {
  vec3 c = vec3(place.x, place.y - place.w, place.z) - p;
  float along = dot(c, SUN);
  return along > 0.0 && dot(c, c) - along * along < place.w * place.w;
}
bool pillarHides(vec4 place, vec4 shape, vec3 p) {
  vec3 c = vec3(place.x, place.y - shape.x / 2.0, place.z) - p;
  float flat_ = dot(SUN.xz, SUN.xz), across = dot(c.xz, SUN.xz);
  float under = across * across - flat_ * (dot(c.xz, c.xz) - place.w * place.w), root = sqrt(max(under, 0.0));
  return under > 0.0 && slabs((across - root) / flat_, (across + root) / flat_, c.y, shape.x / 2.0);
}
bool boxHides(vec4 place, vec4 shape, vec3 p) {
  vec3 c = vec3(place.x, place.y - shape.x / 2.0, place.z) - p;
  vec2 d = vec2(shape.z * SUN.x + shape.w * SUN.z, shape.z * SUN.z - shape.w * SUN.x);
  vec2 at = vec2(shape.z * c.x + shape.w * c.z, shape.z * c.z - shape.w * c.x), extent = vec2(place.w, shape.y);
  vec2 one = (at - extent) / d, other = (at + extent) / d;
  vec2 near = min(one, other), far = max(one, other);
  return slabs(max(near.x, near.y), min(far.x, far.y), c.y, shape.x / 2.0);
}`;

const sunless = `${between}
bool sunless(Hit hit, vec3 p) {
  float top = court.w - painted.x;
  if (hit.surface == 5) return false;
  bool dark = hit.surface == 2 || hit.surface == 3;
  dark = dark || p.y + (-court.x - p.x) / SUN.x * SUN.y > top || p.y + (-court.y - p.z + court.z) / SUN.z * SUN.y > top;
  int own = hit.surface > 5 ? hit.thing : -1;
  for (int i = 0; i < upTo.x; i++) dark = dark || (i != own && ballHides(things[i].place, p));
  for (int i = upTo.x; i < upTo.y; i++) dark = dark || (i != own && pillarHides(things[i].place, things[i].shape, p));
  for (int i = upTo.y; i < upTo.z; i++) dark = dark || (i != own && boxHides(things[i].place, things[i].shape, p));
  return dark || (own >= 0 && dot(SUN, normalAt(hit, p)) <= 0.0);
}`;

const shade = `
vec3 shade(Hit hit, vec3 o, vec3 d) {
  int surface = hit.surface;
  vec3 p = d * min(hit.distance, 1e3) + o;
  float amount, light;
  vec3 first, second;
  if (surface > 5) {
    vec4 place = things[hit.thing].place;
    first = things[hit.thing].colour.rgb; second = things[hit.thing].accent.rgb;
    vec3 n = normalAt(hit, p);
    float facing = dot(SUN, n), foot = clamp(1.0 - (place.y - p.y) / place.w, 0.0, 1.0);
    light = (0.68 - 0.14 * n.y + 0.3 * clamp(facing, -0.4, 1.0)) * (1.0 - 0.3 * foot * foot);
    if (hit.thing < upTo.x) {
      float m = clamp(dot(SUN, d) - 2.0 * facing * dot(n, d), 0.0, 1.0);
      m = m * m; m = m * m; m = m * m;
      light += 0.5 * m * m * m;
    }
    amount = inked.z > 0.0 ? patternAt(hit, p, n) : 0.0;
  } else if (surface == 5) {
    amount = clamp(-1.6 * d.y, 0.0, 1.0); light = 1.0; first = sky[0]; second = sky[1];
  } else {
    bool on_floor = surface == 4;
    float wave = 6.283185307179586 / painted.y, sharp = 2.0 / (wave * painted.w);
    float across = cos((surface == 1 || surface == 3 ? p.z : p.x) * wave), along = cos((on_floor ? p.z : p.y) * wave);
    amount = on_floor
      ? clamp(across * sharp, -1.0, 1.0) * clamp(along * sharp, -1.0, 1.0) * 0.5 + 0.5
      : clamp((across - cos(wave * painted.z / 2.0)) * sharp + 0.5, 0.0, 1.0);
    float edge = on_floor ? min(court.x - abs(p.x), court.y - abs(p.z - court.z)) : court.w - p.y;
    float dim = max(1.0 - edge / 1.2, 0.0);
    light = 1.0 - 0.22 * dim * dim;
    if (on_floor) {
      for (int i = 0; i < upTo.z; i++) {
        vec4 place = things[i].place;
        float square = dot(p.xz - place.xz, p.xz - place.xz) + place.w * place.w;
        light -= 0.62 * place.w * place.w * place.w / (square * sqrt(square));
      }
      first = tiles[0]; second = tiles[1];
    } else { first = walls[surface]; second = stripes[surface]; }
    light -= inked.x * max(1.0 - min(abs(across), abs(along)) * (painted.y / 0.16), 0.0);
  }
  if (inked.y > 0.0 && sunless(hit, p)) light *= 1.0 - inked.y;
  float haze = surface == 5 ? 0.0 : clamp(hit.distance * 0.016, 0.0, 0.35);
  return clamp(mix(first, second, amount) * (light * (1.0 - haze)) + haze * sky[0], 0.0, 1.0);
}`;

/** All that meets a scene, and all that paints it. */
export const meetsScene = [declarations, meet, nearest].join('\n');
export const paintsScene = [normals, patterns, sunless, shade].join('\n');
