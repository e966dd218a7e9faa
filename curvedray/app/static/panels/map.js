// A map of distances: brought from a file or a depth video, or made exactly of the blocks; shown in colour.

import { h, plain } from '../ui/dom.js';
import { button, choice, number, section, toggle } from '../ui/fields.js';
import { dialog } from '../ui/dialog.js';
import { attempt, notice } from '../ui/notices.js';
import { api } from '../state/api.js';
import { lensBody, pathBody, sceneBody } from '../state/project.js';
import { distanceScale } from '../view/scale.js';

export class MapPanel {
  constructor(studio) {
    this.studio = studio;
    this.file = h('input', {
      type: 'file',
      class: 'hidden',
      tabindex: -1,
      multiple: true,
      'aria-label': 'A map or depth video',
      onchange: () => this.bring([...this.file.files]).then(() => (this.file.value = '')),
    });
    this.picture = h('img', { class: 'map-picture', alt: 'The map in colour, at the playhead' });
    this.scale = h('div');
    this.words = h('p', { class: 'help' });
    this.shown = h(
      'div',
      { class: 'stack', hidden: true },
      this.picture,
      this.scale,
      this.words,
      h(
        'div',
        { class: 'row wrap' },
        button('Follow this map', () => this.follow(), { look: 'primary small' }),
        button('Download .npz', () => this.download(), { look: 'small' }),
        button('Put away', () => this.forget(), { look: 'quiet small' }),
      ),
    );
    this.exact = button('Map of the blocks', () => this.ofBlocks(), {
      key: 'map of blocks',
      title: 'The exact distances of a blocked-out scene along this path',
    });
    this.element = section(
      'Map of distances',
      h('p', { class: 'help' }, 'Drop a map, a depth file or a depth video on the page, or choose it.'),
      this.file,
      h(
        'div',
        { class: 'row' },
        button('Choose a map', () => this.file.click(), { key: 'choose a map' }),
        this.exact,
      ),
      this.shown,
    );
  }

  get map() {
    return this.studio.store.project.map;
  }

  /** Upload the files and ask what the server cannot know: what the numbers mean. */
  async bring(files) {
    if (!files.length) return null;
    const asked = await this.question(files[0]);
    if (!asked) return null;
    return attempt(async () => {
      notice(`Reading ${files[0].name} …`);
      let { upload } = await api.upload('map', files[0]);
      for (const file of files.slice(1)) ({ upload } = await api.upload('map', file, upload));
      await this.make({ upload, ...asked }, files[0].name);
    });
  }

  async question(file) {
    if (/\.npz$/i.test(file.name)) return { meaning: null, scale: 'm', grey: null };
    const video = /\.(mp4|mov|webm|mkv|avi)$/i.test(file.name);
    const state = { meaning: 'z', scale: 'm', black: 1, white: 10, inverse: false };
    const fields = [
      choice(
        'What the numbers are',
        () => [
          ['z', 'depth along the axis (Blender, depth cameras)'],
          ['radius', 'distance along each ray'],
        ],
        () => state.meaning,
        (value) => (state.meaning = value),
      ),
      ...(video
        ? [
            number(
              'Black is',
              () => state.black,
              (value) => (state.black = value),
              { min: 0.01, unit: 'm' },
            ),
            number(
              'White is',
              () => state.white,
              (value) => (state.white = value),
              { min: 0.01, unit: 'm' },
            ),
            toggle(
              'Evenly in 1 / metres (disparity)',
              () => state.inverse,
              (value) => (state.inverse = value),
            ),
          ]
        : [
            choice(
              'In',
              () => [
                ['m', 'metres'],
                ['cm', 'centimetres'],
                ['mm', 'millimetres'],
              ],
              () => state.scale,
              (value) => (state.scale = value),
            ),
          ]),
    ];
    const made = () => ({
      meaning: state.meaning,
      scale: state.scale,
      grey: video ? { black: state.black, white: state.white, inverse: state.inverse } : null,
    });
    return dialog(
      `Distances of ${file.name}`,
      h(
        'div',
        { class: 'stack' },
        fields.map(({ element }) => element),
      ),
      [
        ['Cancel', null, ''],
        ['Read it', made, 'primary'],
      ],
    );
  }

  ofBlocks() {
    const { store, derived } = this.studio;
    return attempt(() =>
      this.make({ scene: sceneBody(store.project), path: pathBody(store.project, derived.path.near) }, 'the blocks'),
    );
  }

  async make(source, name) {
    const { store } = this.studio;
    const { clip, lens, cuts, model } = store.project;
    const { frames, width, height } = clip;
    const shape = source.upload ? { lens: lensBody(lens), frames, width, height } : {};
    const made = await api.map({ ...source, ...shape, cuts, model });
    store.edit((project) => Object.assign(project, { map: { ...made, name }, follow: 'map' }));
    for (const note of [...made.notes, ...made.problems])
      notice(note, made.problems.includes(note) ? 'warning' : 'note');
  }

  follow() {
    this.studio.store.edit((project) => (project.follow = 'map'));
    notice('The next take follows this map.');
  }

  forget() {
    this.studio.store.edit((project) =>
      Object.assign(project, { map: null, follow: project.follow === 'map' ? 'nothing' : project.follow }),
    );
  }

  download() {
    const link = h('a', { href: this.map.file, download: 'map.npz' });
    link.click();
  }

  update() {
    const { map } = this;
    const { project } = this.studio.store;
    this.exact.disabled = project.scene.kind !== 'blocks' || !project.scene.blocks.length;
    this.shown.hidden = !map;
    if (!map) return;
    const frame = Math.min(this.studio.shot.frame, map.frames - 1);
    const address = map.picture.replace('FRAME', frame);
    if (this.picture.getAttribute('src') !== address) this.picture.src = address;
    if (map.limits) this.scale.replaceChildren(distanceScale(map.limits, this.studio.start.colours));
    this.words.textContent = `${map.name}: ${map.frames} frames, ${plain(100 * map.valid, 0)} % known, ${plain(map.nearest)} to ${plain(map.farthest)} m.`;
  }
}
