// What happened, in one sentence at the edge of the page; a screen reader says it too.

import { byId, h } from './dom.js';
import { button } from './fields.js';

const LIFE = { note: 6000, warning: 12000 };

/** Show a sentence: kind `note`, or `warning` for what went wrong. */
export function notice(words, kind = 'note') {
  const list = byId('notices');
  for (const shown of list.children) if (shown.dataset.words === words) shown.remove();
  const item = h(
    'div',
    { class: `notice ${kind}`, 'data-words': words, role: kind === 'warning' ? 'alert' : 'status' },
    h('span', {}, words),
  );
  const remove = () => item.remove();
  item.append(button('', remove, { glyph: 'close', label: 'Dismiss', look: 'quiet small' }));
  list.append(item);
  while (list.children.length > 4) list.firstChild.remove();
  setTimeout(remove, LIFE[kind]);
}

/** Run something and say why where it fails. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    notice(error.message, 'warning');
    return null;
  }
}
