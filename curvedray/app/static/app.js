// The studio: makes its parts, joins them, and shows them. Every part is given `studio` and finds the others there.

import { byId, h } from './ui/dom.js';
import { makeBar } from './ui/bar.js';
import { Drops } from './ui/drops.js';
import { listenToKeys } from './ui/shortcuts.js';
import { attempt, notice } from './ui/notices.js';
import { Projects } from './ui/projects.js';
import { tabs } from './ui/tabs.js';
import { api } from './state/api.js';
import { Derived } from './state/derived.js';
import { newProject } from './state/project.js';
import { Store } from './state/store.js';
import { Takes } from './state/takes.js';
import { Finder } from './view/finder.js';
import { Flying } from './view/flying.js';
import { Shot } from './view/shot.js';
import { PlanStage } from './stage/plan.js';
import { Stage } from './stage/stage.js';
import { PathEdits } from './timeline/path_edits.js';
import { Player } from './timeline/player.js';
import { Timeline } from './timeline/timeline.js';
import { Blocks } from './panels/blocks.js';
import { FilmPanel } from './panels/film.js';
import { FootagePanel } from './panels/footage.js';
import { LensPanel } from './panels/lens.js';
import { MovesPanel } from './panels/moves.js';
import { PathPanel } from './panels/path.js';
import { ScenePanel } from './panels/scene.js';
import { Room } from './takes/room.js';

const PANELS = [
  ['lens', 'Lens', LensPanel],
  ['moves', 'Move', MovesPanel],
  ['path', 'Path', PathPanel],
  ['scene', 'Scene', ScenePanel],
  ['film', 'Film', FilmPanel],
  ['footage', 'Footage', FootagePanel],
];

function makeStudio(start) {
  const studio = { start };
  studio.store = new Store(newProject(start));
  studio.derived = new Derived(studio.store);
  studio.shot = new Shot(studio.store, studio.derived);
  studio.takes = new Takes();
  studio.edits = new PathEdits(studio);
  studio.blocks = new Blocks(studio);
  studio.player = new Player(studio.shot, studio.store);
  studio.projects = new Projects(studio);
  studio.flying = new Flying(studio);
  studio.finder = new Finder(studio);
  studio.stage = makeStage(studio);
  studio.timeline = new Timeline(studio);
  studio.room = new Room(studio);
  studio.panels = Object.fromEntries(PANELS.map(([name, , Panel]) => [name, new Panel(studio)]));
  studio.drops = new Drops(studio);
  return studio;
}

function makeStage(studio) {
  try {
    return studio.finder.webgl ? new Stage(studio) : new PlanStage(studio);
  } catch {
    return new PlanStage(studio);
  }
}

function layOut(studio) {
  const pages = PANELS.map(([name, title]) => ({ name, title, element: studio.panels[name].element }));
  let asked = false;
  const refresh = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      studio.panels[inspector.current].update();
    });
  };
  const inspector = tabs('Settings', pages, refresh);
  for (const source of [studio.store, studio.derived, studio.shot]) source.addEventListener('change', refresh);
  studio.showPanel = (name) => inspector.show(name);
  const views = h('div', { class: 'views' }, studio.finder.element, studio.stage.element);
  const shot = h('div', { class: 'centre', id: 'centre-shot' }, views, studio.timeline.element);
  const takes = h('div', { class: 'centre', id: 'centre-takes', hidden: true }, studio.room.element);
  studio.showCentre = (name) => {
    shot.hidden = name !== 'shot';
    takes.hidden = name !== 'takes';
    if (name === 'takes' && studio.shot.playing) studio.player.stop();
    document.dispatchEvent(new CustomEvent('centre', { detail: name }));
    studio.shot.tell('view');
  };
  inspector.element.id = 'inspector';
  const main = byId('main');
  main.replaceChildren(shot, takes, inspector.element);
  main.removeAttribute('aria-busy');
  byId('bar').append(...makeBar(studio));
  studio.flying.attach(studio.finder.first);
  studio.panels.scene.cuts.attach(studio.finder.second);
  refresh();
}

async function open() {
  const start = await api.start();
  const studio = makeStudio(start);
  layOut(studio);
  listenToKeys(studio);
  studio.derived.addEventListener('change', ({ detail }) => {
    const { scene } = studio.derived.problems;
    if (detail === 'problem' && scene && !studio.derived.scene) fallBack(studio);
  });
  studio.derived.refresh();
  window.addEventListener(
    'beforeunload',
    (event) => studio.store.changed && studio.store.past.length && event.preventDefault(),
  );
  window.studio = studio; // for who looks into it from the browser's console
  await attempt(() => studio.takes.begin());
}

/** A prompt that the world cannot build leaves the set empty: show the court, and say why. */
function fallBack(studio) {
  studio.store.settle((project) => (project.scene.kind = 'court'));
}

open().catch((error) => {
  console.error(error); // what a person who mends the page needs
  byId('main').replaceChildren(h('p', { class: 'loading' }, error.message));
  notice(error.message, 'warning');
});
