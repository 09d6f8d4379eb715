// On a narrow screen the bar of tabs is scrolled: to the tab that is open.

export function setUpTabs() {
  const current = document.querySelector(".tabs [aria-current]");
  const bar = current?.closest(".tabs");
  // Only the bar moves: scrollIntoView would move the page as well.
  if (bar) bar.scrollLeft = current.offsetLeft - (bar.clientWidth - current.offsetWidth) / 2 - bar.offsetLeft;
}
