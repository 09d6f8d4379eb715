// An element with `data-poll="MS"` gets a `poll` event, which its hx-trigger waits for, when the page's stream has told that
// something finished, that often at most. Nothing is asked while the tab is hidden, a request is under way, or somebody
// is at the element.

import { isHeld } from "./hold.js";
import { onLive } from "./live.js";

const TICK_MS = 250;
/** What the stream told so far; a connection that is made again may have missed something. */
let changes = 0;
/** When each element was last refreshed, and what was told by then. */
const refreshed = new WeakMap();
/** What was told when a request began. What it brings may lack whatever was told since. */
const begun = new WeakMap();

function tick() {
  if (document.hidden) return;
  const now = performance.now();
  for (const element of document.querySelectorAll("[data-poll]")) {
    const last = refreshed.get(element);
    if (last === undefined) {
      refreshed.set(element, { now, changes });
    } else if (
      changes > last.changes &&
      now - last.now >= Number(element.dataset.poll) &&
      !element.classList.contains("htmx-request") &&
      !isHeld(element)
    ) {
      refreshed.set(element, { now, changes });
      window.htmx.trigger(element, "poll");
    }
  }
}
function onRequest(event) {
  begun.set(event.detail.xhr, changes);
}

function onSwap(event) {
  const told = begun.get(event.detail.xhr);
  if (told === undefined) return;
  for (const element of document.querySelectorAll("[data-poll]")) {
    if (!refreshed.has(element)) refreshed.set(element, { now: performance.now(), changes: told });
  }
}

export function setUpPolling() {
  document.addEventListener("htmx:beforeRequest", onRequest);
  document.addEventListener("htmx:afterSwap", onSwap);
  const changed = () => {
    changes += 1;
  };
  onLive("called", changed);
  document.addEventListener("live-hello", changed);
  // What finishes after the page was made and before its stream begins, the stream does not tell of: its beginning counts
  // as news for what came with the page.
  for (const element of document.querySelectorAll("[data-poll]")) {
    refreshed.set(element, { now: performance.now(), changes });
  }
  setInterval(tick, TICK_MS);
  document.addEventListener("visibilitychange", tick);
}
