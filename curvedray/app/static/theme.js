// Light or dark as was chosen here, else as the system says; before anything is drawn, so that nothing flashes.

const system = matchMedia('(prefers-color-scheme: dark)');

function show() {
  document.documentElement.dataset.theme = localStorage.getItem('theme') ?? (system.matches ? 'dark' : 'light');
  document.dispatchEvent(new Event('themechange'));
}

window.chooseTheme = (theme) => {
  localStorage.setItem('theme', theme);
  show();
};
system.addEventListener('change', show);
show();
