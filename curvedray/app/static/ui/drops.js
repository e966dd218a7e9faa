// Files dropped on the page: projects, camera files, maps, videos. What a name leaves open is asked.

import { byId, h } from './dom.js';
import { dialog } from './dialog.js';
import { attempt, notice } from './notices.js';
import { api } from '../state/api.js';
import { lensBody } from '../state/project.js';

const VIDEOS = /\.(mp4|mov|webm|mkv|avi|m4v)$/i;
const MAPS = /\.(npz|npy|exr|pfm|png|tiff?|dpt)$/i;

export class Drops {
  constructor(studio) {
    this.studio = studio;
    const veil = byId('veil');
    let depth = 0;
    const files = (event) => event.dataTransfer?.types.includes('Files');
    window.addEventListener('dragenter', (event) => {
      if (!files(event)) return;
      depth += 1;
      veil.hidden = false;
    });
    window.addEventListener('dragleave', () => {
      depth = Math.max(0, depth - 1);
      veil.hidden = depth === 0;
    });
    window.addEventListener('dragover', (event) => files(event) && event.preventDefault());
    window.addEventListener('drop', (event) => {
      if (!files(event)) return;
      event.preventDefault();
      depth = 0;
      veil.hidden = true;
      this.take([...event.dataTransfer.files]);
    });
  }

  async take(files) {
    if (!files.length) return;
    const [first] = files;
    if (VIDEOS.test(first.name)) await this.video(first);
    else if (/\.json$/i.test(first.name) && (await this.project(first))) return;
    else if (MAPS.test(first.name)) await this.map(files);
    else await this.cameras(files);
  }

  async video(file) {
    const use = await dialog(
      `What is ${file.name}?`,
      h('p', {}, 'A video can be scored or give its motion, or it can be a depth video.'),
      [
        ['Cancel', null, 'quiet'],
        ['Depth video', 'map', ''],
        ['Footage', 'footage', 'primary'],
      ],
    );
    if (use === 'map') await this.map([file]);
    if (use !== 'footage') return;
    this.studio.showPanel('footage');
    await this.studio.panels.footage.bring(file);
  }

  async map(files) {
    if (/\.npz|\.npy$/i.test(files[0].name)) {
      const use = await dialog(
        `What is ${files[0].name}?`,
        h('p', {}, 'An array can be a map of distances or a camera path.'),
        [
          ['Cancel', null, 'quiet'],
          ['Camera path', 'cameras', ''],
          ['Map of distances', 'map', 'primary'],
        ],
      );
      if (use === 'cameras') await this.cameras(files);
      if (use !== 'map') return;
    }
    this.studio.showPanel('scene');
    await this.studio.panels.scene.map.bring(files);
  }

  /** True where the file is a project of ours, which is then open. */
  async project(file) {
    let record = null;
    try {
      record = file.size < 4e6 ? JSON.parse(await file.text()) : null;
    } catch {
      return false; // some camera files are JSON in name only; the server says what is wrong with them
    }
    if (record?.studio === undefined) return false;
    await attempt(() => this.studio.projects.use(record, file.name.replace(/\.json$/i, '')));
    return true;
  }

  async cameras(files) {
    if (!files.length) return;
    const { store, derived } = this.studio;
    await attempt(async () => {
      let { upload } = await api.upload('cameras', files[0]);
      for (const file of files.slice(1)) ({ upload } = await api.upload('cameras', file, upload));
      const { frames, width, height, fps } = store.project.clip;
      const near = derived.near?.metres ?? 3;
      const ask = (lens) =>
        api.importCameras({ upload, format: null, options: {}, lens, scale: null, frames, width, height, fps, near });
      let own = true;
      const found = await ask(null).catch(() => {
        own = false;
        return ask(lensBody(store.project.lens)); // a file without a lens takes the page's
      });
      const name = files[0].name;
      const about = `${found.format}, ${found.file_frames} cameras (${found.reason}).`;
      store.edit((project) => {
        Object.assign(project.path, {
          kind: 'upload',
          upload,
          format: found.format,
          options: {},
          scale: null,
          name,
          about,
          own_lens: own,
        });
      });
      this.studio.showPanel('path');
      notice(`${name}: read as ${found.format}, ${found.file_frames} cameras.`);
    });
  }
}
