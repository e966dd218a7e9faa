// A project: all that a person decides, and nothing that follows from it. It is what a `.json` file holds.

export const VERSION = 1;

export function newProject(start) {
  const model = start.models[0];
  return {
    studio: VERSION,
    name: 'untitled',
    model: model.name,
    clip: { frames: model.frames, width: model.width, height: model.height, fps: model.fps },
    lens: { name: 'fisheye-150', hfov: 150, xi: 1, pan: [0, 0], zoom: 1 },
    path: {
      kind: 'moves',
      moves: 'orbit left 30deg smooth',
      keys: [],
      smoothness: 1,
      loop: false,
      constant_speed: false,
    },
    scene: { kind: 'caption', blocks: [], eye: 1.5 },
    follow: 'nothing',
    map: null,
    cuts: [],
    film: {
      prompt: model.words?.example ?? 'a lighthouse on a cliff',
      seed: 0,
      steps: null,
      guidance: null,
      camera_guidance: null,
      adapter: null,
    },
  };
}

/** A project read from a file, with what it lacks filled in; throws one sentence where it is none. */
export function openedProject(record, start) {
  if (record === null || typeof record !== 'object' || record.studio !== VERSION)
    throw new Error('This file is not a studio project: it has no "studio": 1.');
  const fresh = newProject(start);
  const known = start.models.some((model) => model.name === record.model);
  const opened = { ...fresh, ...structuredClone(record), model: known ? record.model : fresh.model };
  for (const part of ['clip', 'lens', 'path', 'scene', 'film']) opened[part] = { ...fresh[part], ...record[part] };
  if (!known) opened.clip = fresh.clip; // of a model that is not here
  if (!start.adapters.some((adapter) => adapter.name === opened.film.adapter)) opened.film.adapter = null;
  return opened;
}

/** The project of a take that varies another: by a `seed`, an `adapter`, or one `lens` (name, hfov, xi) for the whole path. */
export function variedProject(project, { seed, adapter, lens }) {
  const varied = structuredClone(project);
  if (seed !== undefined) varied.film.seed = seed;
  if (adapter !== undefined) varied.film.adapter = adapter;
  if (lens) {
    varied.lens = { ...lens, pan: [0, 0], zoom: 1 };
    varied.path.own_lens = false;
    for (const key of varied.path.keys) key.lens = null;
  }
  return varied;
}

/** A Lens as the server takes it. */
export function lensBody({ name, hfov, xi, pan = [0, 0], zoom = 1 }) {
  const changed = pan[0] || pan[1] ? { pan } : {};
  return { ...(name ? { name } : { hfov, xi }), ...changed, ...(zoom !== 1 ? { zoom } : {}) };
}

/** A Path as the server takes it. */
export function pathBody(project, near) {
  const { path, clip } = project;
  const common = { lens: lensBody(project.lens), ...clip, near };
  if (path.kind === 'moves') return { moves: path.moves, ...common };
  if (path.kind === 'upload') {
    const { lens, ...rest } = common;
    const file = {
      upload: path.upload,
      format: path.format ?? null,
      options: path.options ?? {},
      scale: path.scale ?? null,
    };
    return path.own_lens ? { ...file, ...rest } : { ...file, lens, ...rest };
  }
  const keys = path.keys.map(({ position, yaw, pitch, roll, seconds, lens }) => ({
    position,
    yaw,
    pitch,
    roll,
    seconds,
    lens: lens ? lensBody(lens) : null,
  }));
  const { smoothness, loop, constant_speed } = path;
  return { keys, smoothness, loop, constant_speed, ...common };
}

/** A Scene as the server takes it. */
export function sceneBody(project) {
  const { scene, film } = project;
  if (scene.kind === 'blocks' && scene.blocks.length) return { blocks: scene.blocks, eye: scene.eye };
  if (scene.kind === 'caption') return { caption: film.prompt };
  return { court: true };
}

/** A Film as the server takes it. */
export function filmBody(project, near) {
  const { film, model, follow, map, cuts, scene, name } = project;
  const blocks = scene.kind === 'blocks' && scene.blocks.length > 0;
  const followed = follow === 'blocks' && blocks;
  return {
    prompt: film.prompt,
    path: pathBody(project, near),
    seed: film.seed,
    steps: film.steps,
    guidance: film.guidance,
    camera_guidance: film.camera_guidance,
    model,
    adapter: film.adapter,
    scene: followed ? sceneBody(project) : null,
    map: follow === 'map' && map ? map.map : null,
    cuts: followed || (follow === 'map' && map) ? cuts : [],
    title: name === 'untitled' ? '' : name,
    project,
  };
}
