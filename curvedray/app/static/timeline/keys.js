// Keyframes as values: each operation takes a list and gives another. `seconds` of a key is the way to the next one;
// only their proportions count, so they are kept such that together they are as long as the clip.

const LEAST = 0.02; // seconds of a segment

const segments = (keys, loop) => (loop ? keys.length : keys.length - 1);

/** The keys with seconds that add up to the clip's. */
export function timed(keys, total, loop) {
  const count = segments(keys, loop);
  const sum = keys.slice(0, count).reduce((all, key) => all + key.seconds, 0);
  const scale = sum > 0 ? total / sum : 0;
  return keys.map((key, i) => ({ ...key, seconds: i < count ? Math.max(LEAST, key.seconds * scale) : key.seconds }));
}

/** When each key is reached, in seconds. */
export function moments(keys) {
  let now = 0;
  return keys.map(({ seconds }) => {
    const at = now;
    now += seconds;
    return at;
  });
}

/** Give one segment this many seconds; the others share what is left as before. */
export function lasting(keys, index, seconds, total, loop) {
  const now = timed(keys, total, loop);
  const count = segments(now, loop);
  if (count < 2) return now;
  const wanted = Math.min(Math.max(seconds, LEAST), total - LEAST * (count - 1));
  const others = total - now[index].seconds;
  return now.map((key, i) => {
    if (i >= count) return key;
    return { ...key, seconds: i === index ? wanted : (key.seconds * (total - wanted)) / others };
  });
}

/** Move a key in time, between its neighbours. The first stays first; in a path that is no loop, the last stays last. */
export function movedTo(keys, index, moment, total, loop) {
  const now = timed(keys, total, loop);
  const times = moments(now);
  const fixed = index === 0 || (!loop && index === now.length - 1);
  if (fixed) return now;
  const end = index + 1 < now.length ? times[index + 1] : total;
  const at = Math.min(Math.max(moment, times[index - 1] + LEAST), end - LEAST);
  return now.map((key, i) => {
    if (i === index - 1) return { ...key, seconds: at - times[index - 1] };
    return i === index ? { ...key, seconds: end - at } : key;
  });
}

/** A key put in at a moment: it divides the segment it falls into. Returns [keys, its index]. */
export function inserted(keys, key, moment, total, loop) {
  const now = timed(keys, total, loop);
  const times = moments(now);
  let before = times.findLastIndex((time) => time <= moment + 1e-9);
  const last = !loop && before >= now.length - 1;
  if (last) before = now.length - 2;
  const end = before + 1 < now.length ? times[before + 1] : total;
  const at = Math.min(Math.max(moment, times[before] + LEAST), end - LEAST);
  const made = { ...key, seconds: end - at };
  const list = now.map((each, i) => (i === before ? { ...each, seconds: at - times[before] } : each));
  return [[...list.slice(0, before + 1), made, ...list.slice(before + 1)], before + 1];
}

/** A key after the last: the way to it takes as long as the ways before it do on average. */
export function appended(keys, key, total, loop) {
  const now = timed(keys, total, loop);
  const mean = total / Math.max(1, segments(now, loop));
  const list = now.map((each, i) => (i === now.length - 1 ? { ...each, seconds: mean } : each));
  return timed([...list, { ...key, seconds: mean }], total, loop);
}

/** Without one key; its time goes to the segment before it. Two keys are the fewest. */
export function removed(keys, index, total, loop) {
  if (keys.length <= 2) return keys;
  const now = timed(keys, total, loop);
  const list = now.map((key, i) => (i === index - 1 ? { ...key, seconds: key.seconds + now[index].seconds } : key));
  return timed(
    list.filter((_, i) => i !== index),
    total,
    loop,
  );
}
