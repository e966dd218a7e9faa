// The ray-caster's geometry and paints in GLSL, a line-by-line twin of curvedray/world/raycast.py and shading.py.
//
// Software rasterisers pay several times for a loop, so the things of a scene are unrolled here: the text of the
// program depends on which kinds stand in the scene, their numbers are uniforms. Surfaces are numbered as in
// scene.py: walls +z, +x, -z, -x are 0..3, the floor 4, the sky 5, things from 6 on.

const declarations = (count) => `
const float FAR = 1e30;
const vec3 SUN = vec3(-0.45, -0.75, -0.4848);
uniform vec3 walls[4], stripes[4], tiles[2], sky[2];
uniform vec4 court;    // half, half depth, ahead, floor
uniform vec4 painted;  // height, spacing, stripe, softness
uniform vec2 inked;    // ink, shadows
${count ? `uniform vec4 things[${4 * count}]; // x, floor, z, radius; height, half depth, cos, sin; colour; accent` : ''}

struct Hit { float distance; int surface; vec4 place; vec4 shape; vec3 colour; vec3 accent; };
`;

const meet = {
  ball: `
float toBall(vec4 place, vec4 shape, vec3 o, vec3 d) {
  vec3 c = vec3(place.x, place.y - place.w, place.z) - o;
  float along = dot(c, d);
  float under = along * along - (dot(c, c) - place.w * place.w);
  return under < 0.0 ? FAR : along - sqrt(max(under, 0.0));
}`,
  pillar: `
float toPillar(vec4 place, vec4 shape, vec3 o, vec3 d) {
  float top = place.y - shape.x;
  vec2 c = place.xz - o.xz;
  float flat_ = dot(d.xz, d.xz), along = dot(d.xz, c);
  float under = along * along - flat_ * (dot(c, c) - place.w * place.w);
  float side = (along - sqrt(max(under, 0.0))) / flat_;
  if (under < 0.0 || side * d.y < top - o.y || !(side > 0.0)) side = FAR;
  float lid = (top - o.y) / d.y;
  vec2 on = lid * d.xz - c;
  if (o.y >= top || dot(on, on) > place.w * place.w || !(lid > 0.0)) lid = FAR;
  return min(side, lid);
}`,
  box: `
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
}`,
};

const functionOf = { ball: 'toBall', pillar: 'toPillar', box: 'toBox' };

const nearest = (kinds) => `
Hit nearest(vec3 o, vec3 d) {
  Hit hit = Hit(FAR, 5, vec4(0, 0, 0, 1), vec4(1, 1, 1, 0), vec3(0), vec3(0));
  float to_z = ((d.z < 0.0 ? -court.y : court.y) + (court.z - o.z)) / d.z;
  float to_x = ((d.x < 0.0 ? -court.x : court.x) - o.x) / d.x;
  hit.surface = to_x < to_z ? (d.x < 0.0 ? 3 : 1) : (d.z < 0.0 ? 2 : 0);
  hit.distance = min(to_z, to_x);
  if (hit.distance * d.y < court.w - painted.x - o.y) { hit.distance = FAR; hit.surface = 5; }
  float t = (court.w - o.y) / d.y;
  if (t > 0.0 && t < hit.distance) { hit.distance = t; hit.surface = 4; }
${kinds
  .map(
    (kind, i) => `
  t = ${functionOf[kind]}(things[${4 * i}], things[${4 * i + 1}], o, d);
  if (t > 0.0 && t < hit.distance)
    hit = Hit(t, ${6 + i}, things[${4 * i}], things[${4 * i + 1}], things[${4 * i + 2}].rgb, things[${4 * i + 3}].rgb);`,
  )
  .join('')}
  return hit;
}`;

const among = (kinds, kind) =>
  kinds
    .map((k, i) => (k === kind ? `surface == ${6 + i}` : ''))
    .filter(Boolean)
    .join(' || ') || 'false';

const normals = (kinds) => `
vec3 normalAt(Hit hit, vec3 p) {
  vec3 q = vec3(p.x - hit.place.x, p.y - hit.place.y, p.z - hit.place.z);
  int surface = hit.surface;
  if (${among(kinds, 'ball')}) return vec3(q.x, q.y + hit.place.w, q.z) / hit.place.w;
  if (q.y < -hit.shape.x * (1.0 - 1e-4)) return vec3(0, -1, 0);
  if (${among(kinds, 'pillar')}) return vec3(q.x, 0, q.z) / hit.place.w;
  float a = hit.shape.z * q.x + hit.shape.w * q.z, b = hit.shape.z * q.z - hit.shape.w * q.x;
  bool by_a = abs(a) * (hit.shape.y / hit.place.w) > abs(b);
  a = by_a ? sign(a) : 0.0;
  b = by_a ? 0.0 : sign(b);
  return vec3(hit.shape.z * a - hit.shape.w * b, 0, hit.shape.w * a + hit.shape.z * b);
}`;

// Accents: gores on a ball, a framed edge on a box, rings on a pillar.
const patterns = (kinds, accents) =>
  accents
    ? `
float patternAt(Hit hit, vec3 p, vec3 n) {
  int surface = hit.surface;
  float height = hit.place.y - p.y;
  if (${among(kinds, 'ball')}) return clamp(4.0 * cos(4.0 * atan(n.z, n.x)) + 0.5, 0.0, 1.0);
  if (${among(kinds, 'pillar')}) return clamp(8.0 * cos(height * 7.853981634) - 4.0, 0.0, 1.0);
  vec2 q = p.xz - hit.place.xz;
  vec3 side = abs(vec3(hit.shape.z * q.x + hit.shape.w * q.y,
    (hit.shape.z * q.y - hit.shape.w * q.x) * (hit.place.w / hit.shape.y),
    (height - hit.shape.x / 2.0) * (2.0 * hit.place.w / hit.shape.x)));
  float second = max(min(side.x, side.y), min(max(side.x, side.y), side.z));
  return clamp((second / hit.place.w - 0.82) * 30.0, 0.0, 1.0);
}`
    : '';

const between = `
bool slabs(float enter, float leave) { return leave > max(enter, 1e-3); }
bool hides(int kind, vec4 place, vec4 shape, vec3 p) {
  float half_ = kind == 0 ? place.w : shape.x / 2.0;
  vec3 c = vec3(place.x, place.y - half_, place.z) - p;
  if (kind == 0) { float along = dot(c, SUN); return along > 0.0 && dot(c, c) - along * along < place.w * place.w; }
  float enter, leave;
  bool meets = true;
  if (kind == 1) {
    float flat_ = dot(SUN.xz, SUN.xz), across = dot(c.xz, SUN.xz);
    float under = across * across - flat_ * (dot(c.xz, c.xz) - place.w * place.w);
    float root = sqrt(max(under, 0.0));
    enter = (across - root) / flat_; leave = (across + root) / flat_; meets = under > 0.0;
  } else {
    vec2 d = vec2(shape.z * SUN.x + shape.w * SUN.z, shape.z * SUN.z - shape.w * SUN.x);
    vec2 at = vec2(shape.z * c.x + shape.w * c.z, shape.z * c.z - shape.w * c.x), extent = vec2(place.w, shape.y);
    vec2 one = (at - extent) / d, other = (at + extent) / d;
    vec2 near = min(one, other), far = max(one, other);
    enter = max(near.x, near.y); leave = min(far.x, far.y);
  }
  return meets && slabs(max(enter, (c.y + half_) / SUN.y), min(leave, (c.y - half_) / SUN.y));
}`;

const sunless = (kinds) => `${between}
float sunless(Hit hit, vec3 p) {
  float top = court.w - painted.x;
  bool dark = hit.surface == 2 || hit.surface == 3;
  dark = dark || p.y + (-court.x - p.x) / SUN.x * SUN.y > top || p.y + (-court.y - p.z + court.z) / SUN.z * SUN.y > top;
${kinds
  .map((kind, i) => {
    const code = { ball: 0, pillar: 1, box: 2 }[kind];
    return `  dark = dark || (hit.surface != ${6 + i} && hides(${code}, things[${4 * i}], things[${4 * i + 1}], p));`;
  })
  .join('\n')}
  if (hit.surface > 5) dark = dark || dot(SUN, normalAt(hit, p)) <= 0.0;
  return dark && hit.surface != 5 ? 1.0 : 0.0;
}`;

const shade = (kinds, { accents, shadows, ink }) => `
vec3 shade(Hit hit, vec3 o, vec3 d) {
  int surface = hit.surface;
  vec3 p = d * min(hit.distance, 1e3) + o;
  bool on_floor = surface == 4;
  float wave = 6.283185307179586 / painted.y, sharp = 2.0 / (wave * painted.w);
  float across = cos((surface == 1 || surface == 3 ? p.z : p.x) * wave), along = cos((on_floor ? p.z : p.y) * wave);
  float amount = on_floor
    ? clamp(across * sharp, -1.0, 1.0) * clamp(along * sharp, -1.0, 1.0) * 0.5 + 0.5
    : clamp((across - cos(wave * painted.z / 2.0)) * sharp + 0.5, 0.0, 1.0);
  float edge = on_floor ? min(court.x - abs(p.x), court.y - abs(p.z - court.z)) : court.w - p.y;
  float dim = max(1.0 - edge / 1.2, 0.0), light = 1.0 - 0.22 * dim * dim;
  float hidden = 0.0, square;
${kinds
  .map(
    (
      _,
      i,
    ) => `  square = dot(p.xz - things[${4 * i}].xz, p.xz - things[${4 * i}].xz) + things[${4 * i}].w * things[${4 * i}].w;
  hidden += 0.62 * things[${4 * i}].w * things[${4 * i}].w * things[${4 * i}].w / (square * sqrt(square));`,
  )
  .join('\n')}
  if (on_floor) light -= hidden;
  ${ink ? 'light -= inked.x * max(1.0 - min(abs(across), abs(along)) * (painted.y / 0.16), 0.0);' : ''}
  vec3 first = hit.colour, second = hit.accent;
  if (surface == 5) { amount = clamp(-1.6 * d.y, 0.0, 1.0); light = 1.0; first = sky[0]; second = sky[1]; }
  if (on_floor) { first = tiles[0]; second = tiles[1]; }
  ${[0, 1, 2, 3].map((i) => `if (surface == ${i}) { first = walls[${i}]; second = stripes[${i}]; }`).join('\n  ')}
  if (surface > 5) {
    vec3 n = normalAt(hit, p);
    float facing = dot(SUN, n), above = (hit.place.y - p.y) / hit.place.w;
    float foot = clamp(1.0 - above, 0.0, 1.0);
    light = (0.68 - 0.14 * n.y + 0.3 * clamp(facing, -0.4, 1.0)) * (1.0 - 0.3 * foot * foot);
    if (${among(kinds, 'ball')}) {
      float m = clamp(dot(SUN, d) - 2.0 * facing * dot(n, d), 0.0, 1.0);
      m = m * m; m = m * m; m = m * m;
      light += 0.5 * m * m * m;
    }
    amount = ${accents ? 'patternAt(hit, p, n)' : '0.0'};
  }
  ${shadows ? 'light *= 1.0 - inked.y * sunless(hit, p);' : ''}
  float haze = surface == 5 ? 0.0 : clamp(hit.distance * 0.016, 0.0, 0.35);
  return clamp(mix(first, second, amount) * (light * (1.0 - haze)) + haze * sky[0], 0.0, 1.0);
}`;

/** Everything a program needs to meet and to paint a scene of these kinds of things. */
export function sceneSource(kinds, paints) {
  const used = [...new Set(kinds)].map((kind) => meet[kind]);
  return [
    declarations(kinds.length),
    ...used,
    nearest(kinds),
    normals(kinds),
    patterns(kinds, paints.accents),
    paints.shadows ? sunless(kinds) : '',
    shade(kinds, paints),
  ].join('\n');
}
