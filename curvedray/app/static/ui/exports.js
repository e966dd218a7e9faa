// A path as a file of another program. Many formats hold straight lenses only: then it is asked what to write instead.

import { h } from './dom.js';
import { number } from './fields.js';
import { dialog } from './dialog.js';
import { attempt, notice } from './notices.js';
import { api, nameOf, notesOf, saveBlob } from '../state/api.js';

const SPECIAL = { curvedray: 'curvedray (for Blender, with our add-on)' };

/** The formats that can be written, as choices. */
export function writtenFormats(start) {
  return start.formats.filter(({ write }) => write).map(({ name }) => [name, SPECIAL[name] ?? name]);
}

/** Download a Path in a format. `bent`: whether any of its lenses bends. */
export function exportPath(start, path, { format, unit = 'metric', bent }) {
  return attempt(async () => {
    const { lost } = start.formats.find(({ name }) => name === format);
    const refuses = /\bxi\b[^;]*\(refused\)/.test(lost);
    const asked = bent && refuses ? await straightened(path, format) : path;
    if (!asked) return;
    const response = await api.exportCameras({ path: asked, format, unit });
    const name = nameOf(response, `path-${format}`);
    saveBlob(await response.blob(), name);
    notice(`${name} is in your downloads.`);
    for (const note of notesOf(response)) notice(note);
  });
}

/** The same path with a straight lens, of a width that the person chooses; null where they would rather not. */
async function straightened(path, format) {
  let hfov = 90;
  const field = number(
    'Straight lens',
    () => hfov,
    (value) => (hfov = value),
    { min: 10, max: 170, unit: '°', digits: 1 },
  );
  const words = `A ${format} file cannot hold a lens that bends. The path is kept exactly; only its lens is written as a straight one. To keep the fisheye, choose curvedray or colmap.`;
  const answer = await dialog(
    `${format} and this lens`,
    h('div', { class: 'stack' }, h('p', {}, words), field.element),
    [
      ['Cancel', null, ''],
      ['Write it', () => hfov, 'primary'],
    ],
  );
  if (!answer) return null;
  const keys = path.keys ? { keys: path.keys.map((key) => ({ ...key, lens: null })) } : {};
  return { ...path, ...keys, lens: { hfov: answer, xi: 0 } };
}
