// An element with `data-poll="MS"` gets a `poll` event, which its hx-trigger waits for, when the page's stream reports that
// something finished, at most that often. Nothing is asked while the tab is hidden, a request is under way, or somebody
// is at the element.

import { isHeld } from "./hold.js";
import { onLive } from "./live.js";

const TICK_MS = 250;
/** Events of the stream so far; a connection that is made again may have missed something. */
let changes = 0;
/** When each element was last refreshed, and the events by then. */
const refreshed = new WeakMap();
/** The events when a request began. Its response may lack later ones. */
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
  const known = begun.get(event.detail.xhr);
  if (known === undefined) return;
  for (const element of document.querySelectorAll("[data-poll]")) {
    if (!refreshed.has(element)) refreshed.set(element, { now: performance.now(), changes: known });
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
