// Draws a scene through a lens with WebGL2. One caster owns one canvas; each mode's program is compiled once.
//
//   scene  {room, things} as the server gives them, things where they stand at the first frame
//   camera {lens: {fx, fy, cx, cy, xi, max_angle, size}, pose: 16 numbers, row by row, world from camera}
//   time   0..1 of the clip, for things that move

import { fragmentSources, vertexSource } from './glsl_lens.js';
import { FIRST_THING, MOST_THINGS, ORDER } from './glsl_scene.js';

const NO_WIDEST_ANGLE = [0, -1];
const FLOATS = 16; // of a thing

export class Caster {
  /** `colours` of distances, from near to far: 256 times red, green, blue in 0..255. */
  constructor(canvas, colours) {
    const gl = canvas.getContext('webgl2', { antialias: false, alpha: false, preserveDrawingBuffer: true });
    if (!gl) throw new Error('WebGL2 is not available');
    this.gl = gl;
    this.canvas = canvas;
    this.colours = new Uint8Array(colours.flat());
    this.programs = new Map();
    this.floats = gl.getExtension('EXT_color_buffer_float') !== null;
    this.setUp();
    canvas.addEventListener('webglcontextlost', (event) => event.preventDefault());
    canvas.addEventListener('webglcontextrestored', () => {
      this.programs.clear();
      this.setUp();
      canvas.dispatchEvent(new Event('redraw'));
    });
  }

  setUp() {
    const { gl } = this;
    this.twice = null;
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 3, -1, -1, 3]), gl.STATIC_DRAW);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGB8, 256, 1, 0, gl.RGB, gl.UNSIGNED_BYTE, this.colours);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    gl.bindBufferBase(gl.UNIFORM_BUFFER, 0, gl.createBuffer());
    gl.bufferData(gl.UNIFORM_BUFFER, 4 * FLOATS * MOST_THINGS, gl.DYNAMIC_DRAW);
  }

  /**
   * Draw into the canvas; `rows` = [from, to) counted from the top draws a strip of it only. Two `samples` per side of a
   * pixel are a picture of twice the size, shrunk: a loop over them in the program would cost a software rasteriser more.
   */
  draw(scene, camera, { mode = 'picture', samples = 1, time = 0, limits = [1, 10], rows = null } = {}) {
    const { gl, canvas } = this;
    const [width, height] = camera.lens.size;
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    if (samples === 1) {
      gl.bindFramebuffer(gl.FRAMEBUFFER, null);
      this.run(scene, camera, { mode, time, limits, rows });
      return;
    }
    const [top, bottom] = rows ?? [0, height];
    this.bindTwice(2 * width, 2 * height);
    this.run(scene, twice(camera), { mode, time, limits, rows: [2 * top, 2 * bottom] });
    gl.bindFramebuffer(gl.DRAW_FRAMEBUFFER, null);
    const [low, high] = [height - bottom, height - top];
    gl.blitFramebuffer(0, 2 * low, 2 * width, 2 * high, 0, low, width, high, gl.COLOR_BUFFER_BIT, gl.LINEAR);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  /** Draw from here on into a frame of this size, kept until another size is asked for. */
  bindTwice(width, height) {
    const { gl } = this;
    if (this.twice?.width !== width || this.twice?.height !== height) {
      const { frame = gl.createFramebuffer(), pixels = gl.createRenderbuffer() } = this.twice ?? {};
      this.twice = { frame, pixels, width, height };
      gl.bindRenderbuffer(gl.RENDERBUFFER, pixels);
      gl.renderbufferStorage(gl.RENDERBUFFER, gl.RGBA8, width, height);
      gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
      gl.framebufferRenderbuffer(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.RENDERBUFFER, pixels);
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.twice.frame);
  }

  /** Exact numbers, four floats per pixel, top row first: mode `rays` or `radius`. */
  read(scene, camera, { mode, time = 0 }) {
    const { gl } = this;
    if (!this.floats) throw new Error('this browser cannot read floats back');
    const [width, height] = camera.lens.size;
    const target = gl.createRenderbuffer(),
      frame = gl.createFramebuffer();
    gl.bindRenderbuffer(gl.RENDERBUFFER, target);
    gl.renderbufferStorage(gl.RENDERBUFFER, gl.RGBA32F, width, height);
    gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
    gl.framebufferRenderbuffer(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.RENDERBUFFER, target);
    this.run(scene, camera, { mode, time, limits: [1, 10], rows: null });
    const upside = new Float32Array(4 * width * height),
      made = new Float32Array(4 * width * height);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.FLOAT, upside);
    for (let y = 0; y < height; y++)
      made.set(upside.subarray(4 * width * y, 4 * width * (y + 1)), 4 * width * (height - 1 - y));
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.deleteFramebuffer(frame);
    gl.deleteRenderbuffer(target);
    return made;
  }

  /** Wait until all that was asked for is drawn; for calibration. */
  finish() {
    this.gl.readPixels(0, 0, 1, 1, this.gl.RGBA, this.gl.UNSIGNED_BYTE, new Uint8Array(4));
  }

  run(scene, camera, { mode, time, limits, rows }) {
    const { gl } = this;
    const { lens, pose } = camera;
    const [width, height] = lens.size;
    const { program, at } = this.program(mode);
    gl.useProgram(program);
    gl.viewport(0, 0, width, height);
    if (rows) {
      gl.enable(gl.SCISSOR_TEST);
      gl.scissor(0, height - rows[1], width, rows[1] - rows[0]);
    }
    const widest = lens.max_angle < Math.PI ? [Math.sin(lens.max_angle), Math.cos(lens.max_angle)] : NO_WIDEST_ANGLE;
    gl.uniform2f(at('focal'), lens.fx, lens.fy);
    gl.uniform2f(at('centre'), lens.cx, lens.cy);
    gl.uniform2f(at('size'), width, height);
    gl.uniform3f(at('bend'), lens.xi, ...widest);
    const p = pose;
    gl.uniformMatrix3fv(at('rotation'), false, [p[0], p[4], p[8], p[1], p[5], p[9], p[2], p[6], p[10]]);
    gl.uniform3f(at('origin'), p[3], p[7], p[11]);
    if (mode !== 'rays') this.giveScene(at, scene, time);
    if (mode === 'distance') gl.uniform2f(at('limits'), Math.log(limits[0]), Math.log(limits[1]));
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    if (rows) gl.disable(gl.SCISSOR_TEST);
  }

  giveScene(at, { room, things }, time) {
    const { gl } = this;
    for (const name of ['walls', 'stripes', 'tiles', 'sky']) gl.uniform3fv(at(name), room[name].flat());
    gl.uniform4f(at('court'), room.half, room.half_depth, room.ahead, room.floor);
    gl.uniform4f(at('painted'), room.height, room.spacing, room.stripe, room.softness);
    const sorted = ORDER.map((kind) => things.flatMap((thing, i) => (thing.kind === kind ? [[thing, i]] : [])));
    const [balls, pillars, boxes] = sorted.map(({ length }) => length);
    gl.uniform3f(at('inked'), room.ink, room.shadows, things.some((thing) => thing.accent) ? 1 : 0);
    gl.uniform3i(at('upTo'), balls, balls + pillars, balls + pillars + boxes);
    const numbers = sorted.flat().flatMap(([thing, i]) => packed(thing, i, room.floor, time));
    gl.bufferSubData(gl.UNIFORM_BUFFER, 0, new Float32Array(numbers));
  }

  program(mode) {
    if (!this.programs.has(mode)) this.programs.set(mode, this.compile(mode));
    return this.programs.get(mode);
  }

  compile(mode) {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, source] of [
      [gl.VERTEX_SHADER, vertexSource],
      [gl.FRAGMENT_SHADER, fragmentSources[mode]],
    ]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.bindAttribLocation(program, 0, 'corner');
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
      const logs = gl.getAttachedShaders(program).map((shader) => gl.getShaderInfoLog(shader));
      throw new Error(`the picture's program does not compile: ${logs.join(' ')}`);
    }
    const places = new Map();
    const at = (uniform) => {
      if (!places.has(uniform)) places.set(uniform, gl.getUniformLocation(program, uniform));
      return places.get(uniform);
    };
    return { program, at };
  }
}

/** The same camera with an image of twice the size. */
function twice({ lens, pose }) {
  const { fx, fy, cx, cy, size } = lens;
  const larger = { fx: 2 * fx, fy: 2 * fy, cx: 2 * cx, cy: 2 * cy, size: size.map((i) => 2 * i) };
  return { lens: { ...lens, ...larger }, pose };
}

/** A thing's numbers, as `Thing` in glsl_scene.js has them. */
function packed(thing, index, floor, time) {
  const [x, z] = [thing.x + time * thing.motion[0], thing.z + time * thing.motion[1]];
  return [
    x,
    floor - thing.base,
    z,
    thing.radius,
    thing.height,
    thing.half_depth,
    Math.cos(thing.yaw),
    Math.sin(thing.yaw),
    ...thing.colour,
    FIRST_THING + index,
    ...(thing.accent ?? thing.colour),
    0,
  ];
}
