// Light or dark as the system says, or as was chosen here; before anything is drawn, so that nothing flashes.

document.documentElement.dataset.theme = localStorage.getItem('theme') ?? '';

window.chooseTheme = (theme) => {
  document.documentElement.dataset.theme = theme;
  if (theme) localStorage.setItem('theme', theme);
  else localStorage.removeItem('theme');
  document.dispatchEvent(new Event('themechange'));
};
