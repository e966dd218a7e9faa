// Fields that are bound to a value: `get` says what it is, `set` takes what the person gives. `update()` shows it again.
// Every field has a label that a screen reader says, and works from the keyboard alone.

import { clamp, freshId, h, plain } from './dom.js';
import { icon } from './icons.js';

const busyWith = (input) => document.activeElement === input;

/** A button with an icon, words, or both; `label` is said where there are no words. */
export function button(words, act, { look = '', glyph = null, label = null, key = null, title = null } = {}) {
  return h(
    'button',
    {
      type: 'button',
      class: words ? look : `${look} bare`,
      onclick: act,
      'aria-label': label,
      title: title ?? label,
      'data-key': key ?? label ?? words,
    },
    glyph && icon(glyph),
    words && h('span', {}, words),
  );
}

/** A number that is typed. An empty field is `null` where `empty` says what that means. */
export function number(label, get, set, { min, max, step = 'any', unit = '', digits = 2, empty = null, key } = {}) {
  const id = freshId('number');
  const input = h('input', {
    type: 'number',
    id,
    step,
    min: min ?? null,
    max: max ?? null,
    placeholder: empty,
    'data-key': key ?? label,
    onchange: () => {
      const typed = input.value.trim();
      if (typed === '' && empty !== null) set(null);
      else if (typed !== '' && Number.isFinite(Number(typed)))
        set(clamp(Number(typed), min ?? -Infinity, max ?? Infinity));
      show();
    },
  });
  const show = () => {
    const value = get();
    input.value = value === null || value === undefined ? '' : plain(value, digits);
  };
  const update = () => !busyWith(input) && show(); // never under the fingers of who types
  const element = h(
    'div',
    { class: 'field number' },
    h('label', { for: id }, label),
    h('span', { class: 'with-unit' }, input, unit && h('span', { class: 'unit' }, unit)),
  );
  update();
  return { element, update, input };
}

/** A slider with its number beside it. `set(value, done)`: `done` is false while it is dragged. */
export function slider(label, get, set, { min, max, step, unit = '', digits = 2, key } = {}) {
  const id = freshId('slider');
  const range = h('input', { type: 'range', id, min, max, step, 'data-key': key ?? label });
  range.addEventListener('input', () => set(Number(range.value), false));
  range.addEventListener('change', () => set(Number(range.value), true));
  const typed = number(`${label}, typed`, get, (value) => set(value, true), {
    min,
    max,
    step: 'any',
    unit,
    digits,
    key: `${key ?? label} typed`,
  });
  typed.element.querySelector('label').className = 'hidden';
  const update = () => {
    const value = get();
    if (value !== null && value !== undefined) range.value = value;
    range.style.setProperty('--share', clamp((range.value - range.min) / (range.max - range.min), 0, 1));
    typed.update();
  };
  update();
  return {
    element: h('div', { class: 'field slider' }, h('label', { for: id }, label), range, typed.element),
    update,
    range,
  };
}

/** One of a few, as a row of buttons. `choices`: [[value, words], ...]. */
export function segmented(label, choices, get, set, { hideLabel = false } = {}) {
  const id = freshId('group');
  const buttons = choices.map(([value, words, glyph]) =>
    h(
      'button',
      {
        type: 'button',
        role: 'radio',
        'data-key': `${label} ${value}`,
        onclick: () => set(value),
        onkeydown: (event) => walk(event, value),
      },
      glyph && icon(glyph),
      h('span', {}, words),
    ),
  );
  const walk = (event, value) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const at = choices.findIndex(([other]) => other === value);
    const next = (at + step + choices.length) % choices.length;
    set(choices[next][0]);
    buttons[next].focus();
  };
  const update = () => {
    const value = get();
    choices.forEach(([other], i) => {
      buttons[i].setAttribute('aria-checked', other === value);
      buttons[i].tabIndex = other === value || (i === 0 && !choices.some(([each]) => each === value)) ? 0 : -1;
    });
  };
  update();
  const element = h(
    'div',
    { class: 'field' },
    h('span', { class: hideLabel ? 'hidden' : 'label', id }, label),
    h('div', { class: 'segmented', role: 'radiogroup', 'aria-labelledby': id }, buttons),
  );
  return { element, update };
}

/** One of many. `choices()`: [[value, words], ...]. */
export function choice(label, choices, get, set, { key } = {}) {
  const id = freshId('choice');
  const select = h('select', { id, 'data-key': key ?? label, onchange: () => set(JSON.parse(select.value)) });
  let shown = '';
  const update = () => {
    const options = choices();
    const now = JSON.stringify(options);
    if (now !== shown) {
      select.replaceChildren(...options.map(([value, words]) => h('option', { value: JSON.stringify(value) }, words)));
      shown = now;
    }
    select.value = JSON.stringify(get());
  };
  update();
  return { element: h('div', { class: 'field' }, h('label', { for: id }, label), select), update, select };
}

/** Yes or no. */
export function toggle(label, get, set, { key } = {}) {
  const id = freshId('toggle');
  const input = h('input', { type: 'checkbox', id, 'data-key': key ?? label, onchange: () => set(input.checked) });
  const update = () => (input.checked = Boolean(get()));
  update();
  return { element: h('div', { class: 'field toggle' }, input, h('label', { for: id }, label)), update };
}

/** Words, on one line or several. `set(text, done)`. */
export function words(label, get, set, { lines = 1, placeholder = '', hideLabel = false, key, spell = false } = {}) {
  const id = freshId('words');
  const tag = lines > 1 ? 'textarea' : 'input';
  const input = h(tag, {
    id,
    rows: lines > 1 ? lines : null,
    placeholder,
    spellcheck: String(spell),
    autocomplete: 'off',
    'data-key': key ?? label,
  });
  input.addEventListener('input', () => set(input.value, false));
  input.addEventListener('change', () => set(input.value, true));
  const update = () => {
    if (!busyWith(input)) input.value = get() ?? '';
  };
  update();
  return {
    element: h('div', { class: 'field' }, h('label', { for: id, class: hideLabel ? 'hidden' : null }, label), input),
    update,
    input,
  };
}

/** A panel of sections: one column beside the picture, two below it on a tablet. */
export function columns(first, second) {
  return h('div', { class: 'columns' }, h('div', { class: 'stack' }, first), h('div', { class: 'stack' }, second));
}

/** A part of a panel with a heading. */
export function section(title, ...children) {
  const id = freshId('section');
  return h('section', { 'aria-labelledby': id }, h('h3', { id }, title), ...children);
}

/** An entry of a list that is open for editing: its head, its fields in threes, and what follows them. */
export function openCard(head, fields, ...rest) {
  const elements = fields.map(({ element }) => element);
  return h('li', { class: 'card open' }, head, h('div', { class: 'thirds' }, elements), ...rest);
}
