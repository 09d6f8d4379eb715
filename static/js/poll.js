// An element with `data-poll="MS"` refreshes by the clock: it gets a `poll` event, which its hx-trigger waits for, that often.
// Not while the tab is hidden, a request is under way, somebody is at the element (hold.js) or has a question open in it, or
// the connection to the server is lost (live.js: a page that polls has a `data-live-topic`, `alive=1` if nothing else).
// What must arrive at once comes by the page's stream instead.

import { isHeld } from "./hold.js";

const TICK_MS = 250;
/** When each element was last refreshed. One that a response brought is fresh. */
const refreshed = new WeakMap();

function isDue(element, now) {
  const last = refreshed.get(element);
  if (last === undefined) refreshed.set(element, now);
  return last !== undefined && now - last >= Number(element.dataset.poll);
}

function isBusy(element) {
  return (
    element.classList.contains("htmx-request") || isHeld(element) || element.querySelector("details.ask[open]") !== null
  );
}

function tick() {
  if (document.hidden || document.body.dataset.liveState === "lost") return;
  const now = performance.now();
  for (const element of document.querySelectorAll("[data-poll]")) {
    if (!isDue(element, now) || isBusy(element)) continue;
    refreshed.set(element, now);
    window.htmx.trigger(element, "poll");
  }
}

/** A page that is merely open must not keep its session from expiring: the server is told who asks. */
function onConfigure(event) {
  if (event.detail.triggeringEvent?.type === "poll") event.detail.headers["X-Hearth-Poll"] = "1";
}

export function setUpPolling() {
  document.addEventListener("htmx:configRequest", onConfigure);
  setInterval(tick, TICK_MS);
  document.addEventListener("visibilitychange", tick);
}
