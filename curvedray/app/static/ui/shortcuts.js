// Keys of the whole page, and the list of them.

import { h } from './dom.js';
import { dialog } from './dialog.js';

const KEYS = [
  ['Space', 'play, pause'],
  ['← →', 'one frame back, ahead'],
  ['Home End', 'first, last frame'],
  ['K', 'add a keyframe at the playhead'],
  ['O', 'overwrite the selected keyframe from the view'],
  ['[ ]', 'select the keyframe before, after'],
  ['Ctrl+D', 'copy the selected keyframe'],
  ['Delete', 'delete the selected keyframe or block'],
  ['F', 'fly the camera; Enter records a keyframe, Escape comes back'],
  ['W A S D  E Q', 'while flying: ahead, left, back, right, up, down'],
  ['Ctrl+Z  Ctrl+Shift+Z', 'undo, redo'],
  ['Ctrl+S', 'save the project'],
  ['Ctrl+Enter', 'film'],
  ['1 … 6', 'the settings’ tabs'],
  ['T', 'shot or takes'],
  ['?', 'this list'],
];
const PANELS = ['lens', 'moves', 'path', 'scene', 'film', 'footage'];

export const showKeys = () =>
  dialog(
    'Keys',
    h(
      'dl',
      { class: 'facts keys-list' },
      KEYS.map(([key, words]) => [h('dt', {}, h('kbd', {}, key)), h('dd', {}, words)]),
    ),
  );

export function listenToKeys(studio) {
  const { shot, store, edits, player, flying } = studio;
  const step = (by) => () => shot.goto(shot.frame + by);
  const keys = () => (store.project.path.kind === 'keys' ? store.project.path.keys.length : 0);
  const neighbour = (by) => () => keys() && shot.select(((shot.key ?? (by > 0 ? -1 : 0)) + by + keys()) % keys());
  const remove = () => {
    if (shot.block !== null) studio.blocks.remove(shot.block);
    else if (shot.key !== null) edits.remove(shot.key);
  };
  const plain = {
    ' ': () => player.toggle(),
    ArrowLeft: step(-1),
    ArrowRight: step(1),
    Home: () => shot.goto(0),
    End: () => shot.goto(shot.frames - 1),
    k: () => edits.addHere(),
    o: () => shot.key !== null && edits.overwrite(shot.key),
    '[': neighbour(-1),
    ']': neighbour(1),
    Delete: remove,
    Backspace: remove,
    f: () => flying.toggle(),
    t: () => studio.showCentre(document.getElementById('centre-shot').hidden ? 'shot' : 'takes'),
    '?': showKeys,
    ...Object.fromEntries(PANELS.map((name, i) => [String(i + 1), () => studio.showPanel(name)])),
  };
  const held = {
    z: (event) => (event.shiftKey ? store.redo() : store.undo()),
    y: () => store.redo(),
    s: () => studio.projects.save(),
    d: () => shot.key !== null && edits.copy(shot.key),
    Enter: () => studio.panels.film.shoot(),
  };
  window.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || document.querySelector('dialog[open]')) return;
    const typing = event.target.closest('input:not([type=range]):not([type=checkbox]), textarea, select');
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (event.ctrlKey || event.metaKey) {
      if (!held[name] || (typing && (name === 'z' || name === 'y' || name === 'd'))) return;
      event.preventDefault();
      if (event.repeat && name !== 'z' && name !== 'y') return; // a key held down films and saves once
      if (typing) document.activeElement.blur(); // what is being typed counts
      held[name](event);
      return;
    }
    if (typing || event.altKey || flying.on || !plain[name]) return;
    if (
      event.target.closest('button, [role=slider], input') &&
      [' ', 'ArrowLeft', 'ArrowRight', 'Home', 'End'].includes(name)
    )
      return;
    event.preventDefault();
    plain[name](event);
  });
}
