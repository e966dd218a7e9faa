// Tabs: one panel at a time, arrow keys between them.

import { h } from './dom.js';

/** `pages`: [{name, title, element}]. Returns {element, show(name)}. */
export function tabs(label, pages, shown = () => {}) {
  const heads = pages.map(({ name, title }) =>
    h(
      'button',
      {
        type: 'button',
        role: 'tab',
        id: `tab-${name}`,
        'data-words': title,
        'aria-controls': `panel-${name}`,
        onclick: () => show(name),
        onkeydown: walk,
      },
      title,
    ),
  );
  const panels = pages.map(({ name, element }) =>
    h('div', { role: 'tabpanel', id: `panel-${name}`, 'aria-labelledby': `tab-${name}`, class: 'panel' }, element),
  );
  let current = null;

  function walk(event) {
    const at = heads.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: heads.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const next = (to + heads.length) % heads.length;
    show(pages[next].name);
    heads[next].focus();
  }

  function show(name) {
    current = name;
    pages.forEach((page, i) => {
      const here = page.name === name;
      heads[i].setAttribute('aria-selected', here);
      heads[i].tabIndex = here ? 0 : -1;
      panels[i].hidden = !here;
    });
    shown(name);
  }
  const element = h('div', { class: 'tabs' }, h('div', { role: 'tablist', 'aria-label': label }, heads), panels);
  show(pages[0].name);
  return {
    element,
    show,
    get current() {
      return current;
    },
  };
}
