// The exact text of moves, taken apart and put together: `orbit left 40deg smooth, then dolly in 0.5`. The server makes
// that text of whatever is typed; here single moves in it are found, changed and written back, brackets left alone.

const JOINS = /(, then | and |\(|\))/;
const NUMBER = /^([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)(deg|m|x)?(\/s)?$/;
const DIRECTIONS = new Set(['left', 'right', 'up', 'down', 'in', 'out', 'cw', 'ccw']);
const EASINGS = new Set(['linear', 'ease-in', 'ease-out', 'smooth']);
const DISTANCES = new Set(['radius', 'subject', 'sway']);

/** Pieces of the text in order: {text, move} where it is a move, {text} where it joins. */
export function pieces(text) {
  return text
    .split(JOINS)
    .filter((piece) => piece !== '')
    .map((piece) =>
      JOINS.test(piece) && !/^[a-z_]+/.test(piece) ? { text: piece } : { text: piece, move: readMove(piece) },
    );
}

export function joined(parts) {
  return parts.map(({ text, move }) => (move ? writeMove(move) : text)).join('');
}

function quantity(word) {
  const found = NUMBER.exec(word);
  return found && { value: Number(found[1]), unit: found[2] ?? 'near', speed: Boolean(found[3]) };
}

const written = ({ value, unit, speed }) =>
  `${Number(value.toPrecision(12))}${unit === 'near' ? '' : unit}${speed ? '/s' : ''}`;

/** One move's words as values. */
export function readMove(text) {
  const [name, ...words] = text.trim().split(/\s+/);
  const move = {
    name,
    direction: null,
    amount: null,
    word: null,
    distance: null,
    to: null,
    seed: null,
    ease: 'linear',
    share: null,
    seconds: null,
  };
  while (words.length) {
    const word = words.shift();
    if (DIRECTIONS.has(word)) move.direction = word;
    else if (EASINGS.has(word)) move.ease = word;
    else if (DISTANCES.has(word)) [move.word, move.distance] = [word, quantity(words.shift())];
    else if (word === 'to') move.to = quantity(words.shift());
    else if (word === 'seed') move.seed = Number(words.shift());
    else if (word === 'for') {
      const long = words.shift();
      if (long.endsWith('s')) move.seconds = parseFloat(long);
      else move.share = Number(long);
    } else move.amount = quantity(word);
  }
  return move;
}

/** A move's values as words. */
export function writeMove(move) {
  const words = [move.name, move.direction, move.amount && written(move.amount)];
  if (move.distance) words.push(move.word, written(move.distance));
  if (move.to) words.push('to', written(move.to));
  if (move.seed !== null) words.push(`seed ${move.seed}`);
  if (move.ease !== 'linear') words.push(move.ease);
  if (move.seconds !== null) words.push(`for ${move.seconds}s`);
  else if (move.share !== null) words.push(`for ${move.share}`);
  return words.filter(Boolean).join(' ');
}

/** The text with another move after all of it (`then`) or at the same time as its last part (`and`). */
export function withMove(text, added, join) {
  const before = text.trim();
  if (!before || /^static$/.test(before)) return added;
  return join === 'then' ? `${before}, then ${added}` : `${before} and ${added}`;
}

/** The text without its piece number `index`, and without a word or bracket that then joins nothing. */
export function withoutMove(parts, index) {
  let text = joined(parts.filter((_, i) => i !== index));
  for (let before = null; before !== text;) {
    before = text;
    text = text
      .replace(/(, then | and )(, then | and )/g, (_, one, other) => (one === other ? one : ', then '))
      .replace(/\((?:, then | and )/g, '(')
      .replace(/(?:, then | and )\)/g, ')')
      .replace(/\(\)/g, '')
      .replace(/^(?:, then | and )|(?:, then | and )$/g, '');
  }
  return text || 'static';
}
