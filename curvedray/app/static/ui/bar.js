// The bar at the top: the project, undo and redo, the set or the takes, findings, theme, keys.

import { h } from './dom.js';
import { button, segmented, words } from './fields.js';
import { dialog } from './dialog.js';
import { icon } from './icons.js';
import { attempt } from './notices.js';
import { api } from '../state/api.js';
import { showKeys } from './shortcuts.js';

export function makeBar(studio) {
  const { store, projects, takes } = studio;
  const name = words(
    'Project',
    () => store.project.name,
    (text, done) => done && projects.rename(text),
    { hideLabel: true, key: 'project name' },
  );
  name.element.classList.add('project-name');
  const unsaved = h('span', { class: 'unsaved', title: 'Not saved yet' }, '•');
  const undo = button('', () => store.undo(), { glyph: 'undo', label: 'Undo', title: 'Undo (Ctrl+Z)', look: 'quiet' });
  const redo = button('', () => store.redo(), {
    glyph: 'redo',
    label: 'Redo',
    title: 'Redo (Ctrl+Shift+Z)',
    look: 'quiet',
  });
  let centre = 'shot';
  const views = segmented(
    'Show',
    [
      ['shot', 'Shot'],
      ['takes', 'Takes'],
    ],
    () => centre,
    (value) => studio.showCentre(value),
    { hideLabel: true },
  );
  document.addEventListener('centre', ({ detail }) => {
    centre = detail;
    views.update();
  });
  const state = h('span', { class: 'worker', role: 'status' });
  const update = () => {
    name.update();
    unsaved.classList.toggle('shown', store.changed);
    unsaved.ariaHidden = !store.changed;
    undo.disabled = !store.past.length;
    redo.disabled = !store.future.length;
    const said = { loading: 'loading the model', ready: 'ready', working: 'filming', restarting: 'starting again' };
    state.dataset.state = takes.online ? (takes.worker?.state ?? 'loading') : 'offline';
    state.textContent = takes.online ? (said[takes.worker?.state] ?? '') : 'no answer';
  };
  for (const source of [store, takes]) source.addEventListener('change', update);
  update();
  return [
    h('h1', {}, logo(), h('span', {}, 'curvedray studio')),
    h(
      'div',
      { class: 'group' },
      name.element,
      unsaved,
      button('New', () => projects.fresh(), { look: 'quiet' }),
      button('Open', () => projects.browse(), { look: 'quiet' }),
      button('Save', () => projects.save(), { look: 'quiet', title: 'Save (Ctrl+S)' }),
      button('Download', () => projects.download(), { look: 'quiet', title: 'The project as a file' }),
    ),
    h('div', { class: 'group' }, undo, redo),
    views.element,
    h('span', { class: 'spacer' }),
    state,
    h(
      'div',
      { class: 'group' },
      button('Doctor', () => showDoctor(), { glyph: 'heart', look: 'quiet', title: 'What is missing on this machine' }),
      button('', () => nextTheme(), { glyph: 'sun', label: 'Light or dark', look: 'quiet' }),
      button('', () => showKeys(), { glyph: 'help', label: 'Keys', title: 'Keys (?)', look: 'quiet' }),
    ),
  ];
}

function logo() {
  return h('span', { class: 'logo' }, icon('eye'));
}

function nextTheme() {
  window.chooseTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
}

async function showDoctor() {
  const answer = await attempt(() => api.doctor());
  if (!answer) return;
  const rows = answer.findings.map(({ what, ok, found, needed_for, fix }) =>
    h(
      'li',
      { class: ok ? 'ok' : 'missing' },
      h('strong', {}, `${ok ? '✓' : '–'} ${what}`),
      h('span', {}, [found, needed_for && `for ${needed_for}`].filter(Boolean).join(' · ')),
      !ok && fix ? h('code', {}, fix) : null,
    ),
  );
  await dialog('Doctor', h('ul', { class: 'doctor' }, rows));
}
