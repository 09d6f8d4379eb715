// On narrow screens, scrolls the tab bar to the open tab.

export function setUpTabs() {
  const current = document.querySelector(".tabs [aria-current]");
  const bar = current?.closest(".tabs");
  // Only the bar moves: scrollIntoView would move the page as well.
  if (bar) bar.scrollLeft = current.offsetLeft - (bar.clientWidth - current.offsetWidth) / 2 - bar.offsetLeft;
}
