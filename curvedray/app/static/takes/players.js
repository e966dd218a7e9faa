// Videos side by side that play, stop and are searched as one, those of other takes beside this one among them.

import { h } from '../ui/dom.js';
import { button } from '../ui/fields.js';

/** `videos`: [[address, caption], ...]. */
export function players(videos) {
  const own = videos.map(([address]) =>
    h('video', { src: address, muted: true, loop: true, playsinline: true, preload: 'auto', 'aria-hidden': 'true' }),
  );
  for (const video of own) video.muted = true;
  const [lead] = own;
  const bar = h('input', { type: 'range', min: 0, max: 1000, value: 0, 'aria-label': 'Place in the video' });
  const all = () => [...(lead.closest('.take-details')?.querySelectorAll('.videos video') ?? own)];
  const toggle = button('Play', () => (lead.paused ? play() : stop()), { look: 'small', key: 'play videos' });
  const words = toggle.querySelector('span');
  const play = () => {
    const [first] = all();
    for (const video of all()) {
      video.currentTime = first.currentTime;
      video.play().catch(() => {});
    }
  };
  const stop = () => all().forEach((video) => video.pause());
  for (const event of ['play', 'pause'])
    lead.addEventListener(event, () => (words.textContent = lead.paused ? 'Play' : 'Pause'));
  lead.addEventListener('timeupdate', () => {
    if (lead.duration) bar.value = (1000 * lead.currentTime) / lead.duration;
    const [first, ...others] = all();
    if (first !== lead) return;
    for (const video of others)
      if (Math.abs(video.currentTime - lead.currentTime) > 0.15) video.currentTime = lead.currentTime;
  });
  bar.addEventListener('input', () => {
    stop();
    for (const video of all())
      if (video.duration) video.currentTime = (bar.value / 1000) * Math.max(0, video.duration - 1e-3);
  });
  lead.addEventListener('canplay', play, { once: true });
  const figures = own.map((video, i) => h('figure', {}, video, h('figcaption', {}, videos[i][1])));
  return h(
    'div',
    { class: 'players' },
    h('div', { class: 'videos', 'data-count': own.length }, figures),
    h('div', { class: 'transport' }, toggle, bar),
  );
}
