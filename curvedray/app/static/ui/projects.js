// Projects as files: saved by the server in its folder, whole; downloaded and dropped as `.json`.

import { h, plain } from './dom.js';
import { button } from './fields.js';
import { dialog } from './dialog.js';
import { attempt, notice } from './notices.js';
import { api, saveBlob } from '../state/api.js';
import { newProject, openedProject } from '../state/project.js';

const NAME = /^[A-Za-z0-9 _-]{1,64}$/;

export class Projects {
  constructor(studio) {
    this.studio = studio;
  }

  get name() {
    return this.studio.store.project.name;
  }

  rename(name) {
    const clean = name.trim();
    if (!NAME.test(clean)) return notice('A name has letters, digits, spaces, _ and -, at most 64.', 'warning');
    return this.studio.store.edit((project) => (project.name = clean), 'name');
  }

  use(record, name = null) {
    const opened = openedProject(record, this.studio.start);
    if (name && NAME.test(name)) opened.name = name;
    this.studio.store.open(opened);
    notice(`${opened.name} is open.`);
  }

  async fresh() {
    if (this.studio.store.changed && !(await this.sure())) return;
    this.studio.store.open(newProject(this.studio.start));
  }

  sure() {
    return dialog('Leave this project?', h('p', {}, 'It has changes that are not saved.'), [
      ['Stay', null, ''],
      ['Leave it', true, 'danger'],
    ]);
  }

  save() {
    return attempt(async () => {
      await api.saveProject(this.name, this.studio.store.project);
      this.studio.store.markSaved();
      notice(`Saved as ${this.name}.`);
    });
  }

  download() {
    saveBlob(
      new Blob([JSON.stringify(this.studio.store.project, null, 1)], { type: 'application/json' }),
      `${this.name}.json`,
    );
  }

  async browse() {
    const answer = await attempt(() => api.projects());
    if (!answer) return;
    const file = h('input', { type: 'file', accept: '.json,application/json', 'aria-label': 'A project file' });
    const list = h(
      'ol',
      { class: 'projects' },
      answer.projects.map((project) => this.row(project)),
    );
    const content = h(
      'div',
      { class: 'stack' },
      answer.projects.length ? list : h('p', { class: 'help' }, 'No saved project yet.'),
      h('p', { class: 'label' }, 'Or a file'),
      file,
    );
    file.addEventListener('change', async () => {
      this.closing?.();
      await attempt(async () =>
        this.use(JSON.parse(await file.files[0].text()), file.files[0].name.replace(/\.json$/i, '')),
      );
    });
    const shown = dialog('Open a project', content);
    this.closing = () => content.closest('dialog').querySelector('footer button').click();
    await shown;
  }

  row({ name, changed, bytes }) {
    const open = async () => {
      if (this.studio.store.changed && !(await this.sure())) return;
      this.closing();
      await attempt(async () => this.use(await api.project(name), name));
    };
    const remove = async (event) => {
      const item = event.target.closest('li');
      if (await attempt(() => api.removeProject(name))) item.remove();
    };
    return h(
      'li',
      {},
      button(name, open, { look: 'quiet', key: `project ${name}` }),
      h('span', { class: 'help' }, `${new Date(changed).toLocaleString()} · ${plain(bytes / 1000, 1)} kB`),
      button('', remove, { glyph: 'trash', label: `Delete ${name}`, look: 'quiet small' }),
    );
  }
}
