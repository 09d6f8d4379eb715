// Live parts of a page: an element with `data-poll="MS"` gets a `poll` event that often, which its hx-trigger waits for.
// Nothing is asked while the tab is hidden, a request is under way, or text in the element is selected.

const TICK_MS = 250;
/** When each element was last refreshed. A swapped-in element is fresh. */
const refreshed = new WeakMap();

function isSelecting(element) {
  const selection = document.getSelection();
  return selection !== null && !selection.isCollapsed && selection.containsNode(element, true);
}

function isBusy(element) {
  return (
    element.classList.contains("htmx-request") ||
    // An open choice inside would close under the user's hand.
    (document.activeElement?.tagName === "SELECT" && element.contains(document.activeElement))
  );
}

function tick() {
  if (document.hidden) return;
  const now = performance.now();
  for (const element of document.querySelectorAll("[data-poll]")) {
    const last = refreshed.get(element);
    if (last === undefined) {
      refreshed.set(element, now);
    } else if (now - last >= Number(element.dataset.poll) && !isBusy(element) && !isSelecting(element)) {
      refreshed.set(element, now);
      window.htmx.trigger(element, "poll");
    }
  }
}

export function setUpPolling() {
  setInterval(tick, TICK_MS);
  document.addEventListener("visibilitychange", tick);
}
