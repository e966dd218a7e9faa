// Questions in front of the page: the browser's own <dialog>, so focus and Escape are right.

import { h } from './dom.js';
import { button } from './fields.js';

/** Open a dialog; `actions`: [[words, value, look], ...]. Resolves to the chosen value, or null. */
export function dialog(title, content, actions = [['Close', null, 'primary']]) {
  return new Promise((resolve) => {
    const box = h('dialog', { 'aria-label': title });
    const close = (value) => {
      box.close();
      box.remove();
      resolve(value);
    };
    box.append(
      h(
        'header',
        {},
        h('h2', {}, title),
        button('', () => close(null), { glyph: 'close', label: 'Close', look: 'quiet small' }),
      ),
      h('div', { class: 'content' }, content),
      h(
        'footer',
        {},
        actions.map(([words, value, look]) =>
          button(words, () => close(typeof value === 'function' ? value() : value), { look }),
        ),
      ),
    );
    box.addEventListener('cancel', (event) => {
      event.preventDefault();
      close(null);
    });
    document.body.append(box);
    box.showModal();
  });
}
