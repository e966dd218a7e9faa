// Small helpers for elements. No markup is ever made from text: names and prompts are people's own.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined) continue;
    if (name.startsWith('aria-')) element.setAttribute(name, String(value));
    else if (value === false) continue;
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'class') element.setAttribute('class', value);
    else if (name === 'value') element.value = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An element: h('button', {class: 'quiet', onclick: act}, 'Save'). */
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

/** An element of a drawing. */
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** A function that calls another with the browser's next frame, once however often it is called before that. */
export function withNextFrame(act) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      act();
    });
  };
}

export const byId = (id) => document.getElementById(id);

let serial = 0;
export const freshId = (word) => `${word}-${++serial}`;

/** Put other children into an element, and the focus back to where it was, found by `data-key`. */
export function refill(element, ...children) {
  const key = element.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  element.replaceChildren(...children.flat(3).filter(Boolean));
  if (key) element.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

export const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** A number as a person writes it: at most so many digits after the point, none that say nothing. */
export const plain = (value, digits = 2) => String(Number(Number(value).toFixed(digits)));
