// What can be kept of a take: its files, its path in any format, and the command that makes the same video.

import { h } from '../ui/dom.js';
import { button, choice } from '../ui/fields.js';
import { exportPath, writtenFormats } from '../ui/exports.js';
import { notice } from '../ui/notices.js';
import { api } from '../state/api.js';

const FILES = [
  ['video', 'Video'],
  ['still', 'Still'],
  ['exact', 'Exact rendering'],
  ['beside', 'Source and result'],
  ['map', 'Map'],
  ['map_video', 'Map in colour'],
  ['cameras', 'Cameras'],
  ['recipe', 'Recipe'],
  ['sheet', 'Contact sheet'],
  ['path', 'Path picture'],
  ['radii', 'Distances found'],
];

export function downloadsOf(studio, take) {
  const links = FILES.filter(([name]) => take.files?.[name]).map(([name, words]) =>
    h(
      'a',
      { class: 'chip', href: `${api.file(take.take, take.files[name])}?download=1`, download: take.files[name] },
      words,
    ),
  );
  const parts = [h('div', { class: 'chips' }, links)];
  if (take.asked?.path) parts.push(exportOf(studio, take));
  if (take.command) parts.push(commandOf(take));
  return h('div', { class: 'stack' }, parts);
}

function exportOf(studio, take) {
  let format = 'nerfstudio';
  const formats = choice(
    'Path as',
    () => writtenFormats(studio.start),
    () => format,
    (value) => (format = value),
    { key: 'take format' },
  );
  const { lens, keys } = take.asked.path;
  const bends = (each) => each && (each.name ? !each.name.startsWith('pinhole') : each.xi > 0);
  const save = () =>
    exportPath(studio.start, take.asked.path, { format, bent: bends(lens) || (keys ?? []).some((key) => bends(key.lens)) });
  return h('div', { class: 'row end' }, formats.element, button('Download the path', save, { key: 'take path' }));
}

function commandOf(take) {
  const copy = () =>
    navigator.clipboard.writeText(take.command).then(
      () => notice('The command is copied.'),
      () => notice('Select the command and copy it.', 'warning'),
    );
  const needs = take.command_needs?.length ? `It reads ${take.command_needs.join(', ')}: download it beside.` : '';
  return h(
    'div',
    { class: 'command' },
    h('p', { class: 'label' }, 'The command that makes the same video'),
    h('pre', { tabindex: 0 }, h('code', {}, take.command)),
    h(
      'div',
      { class: 'row' },
      button('Copy', copy, { look: 'small', glyph: 'copy', key: 'copy command' }),
      h('span', { class: 'help' }, needs),
    ),
  );
}
