// Videos side by side that play, stop and are searched as one.

import { h } from '../ui/dom.js';
import { button } from '../ui/fields.js';

/** `videos`: [[address, caption], ...]. */
export function players(videos) {
  const players = videos.map(([address]) =>
    h('video', { src: address, muted: true, loop: true, playsinline: true, preload: 'auto', 'aria-hidden': 'true' }),
  );
  for (const video of players) video.muted = true;
  const [lead] = players;
  const bar = h('input', { type: 'range', min: 0, max: 1000, value: 0, 'aria-label': 'Place in the video' });
  const all = (act) => players.forEach(act);
  const toggle = button('Play', () => (lead.paused ? play() : stop()), { look: 'small', key: 'play videos' });
  const words = toggle.querySelector('span');
  const play = () => {
    all((video) => {
      video.currentTime = lead.currentTime;
      video.play().catch(() => {});
    });
    words.textContent = 'Pause';
  };
  const stop = () => {
    all((video) => video.pause());
    words.textContent = 'Play';
  };
  lead.addEventListener('timeupdate', () => {
    if (lead.duration) bar.value = (1000 * lead.currentTime) / lead.duration;
    for (const video of players.slice(1))
      if (Math.abs(video.currentTime - lead.currentTime) > 0.15) video.currentTime = lead.currentTime;
  });
  bar.addEventListener('input', () => {
    stop();
    all((video) => video.duration && (video.currentTime = (bar.value / 1000) * Math.max(0, video.duration - 1e-3)));
  });
  lead.addEventListener('canplay', play, { once: true });
  const figures = players.map((video, i) => h('figure', {}, video, h('figcaption', {}, videos[i][1])));
  return h(
    'div',
    { class: 'players' },
    h('div', { class: 'videos', 'data-count': players.length }, figures),
    h('div', { class: 'transport' }, toggle, bar),
  );
}
