// Live updates: one stream per page (`/live`), built from the `data-live-topic` of its parts.
//
// The connection is closed while the tab is hidden and reopened when it becomes visible. When it breaks, the page says
// so and retries with increasing pauses. Values are written at most once per frame; a counter (`data-count`) never
// decreases.

import { isHeld } from "./hold.js";
import { logIn } from "./session.js";
import { toast } from "./toast.js";

/** First pause before trying again, doubled up to the longest. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
/** The server sends something every second: after so long the connection is as good as broken. */
const SILENCE_MS = 8_000;
/** A list whose functions changed is fetched again this often at most. */
const REFRESH_MS = 2_000;
/** How often it is looked whether what was held back can be shown. */
const LATE_MS = 250;

/** Handlers of events by name: several parts of the page may listen to one event. */
const handlers = new Map();
let source;
let address = "";
let pause = FIRST_PAUSE_MS;
let timer;
let silence;
let run;
let waiting = new Map();
let frame = 0;

/** Calls `handle(data)` in an animation frame for the newest event of this name. */
export function onLive(name, handle) {
  handlers.set(name, [...(handlers.get(name) ?? []), handle]);
}

function topics() {
  const parts = Array.from(document.querySelectorAll("[data-live-topic]"), (element) => element.dataset.liveTopic);
  return parts.length > 0 ? `/live?${parts.join("&")}` : "";
}

/** `open`, `paused` (nobody looks), `lost`: for styles, and for whoever drives the page. */
function state(name) {
  document.body.dataset.liveState = name;
}

/** What the page says about its connection: nothing while all is well. */
function mark(text, login = false) {
  const status = document.getElementById("live-status");
  if (!status) return;
  status.replaceChildren();
  status.hidden = text === "";
  if (text === "") return;
  status.append(text);
  if (login) {
    const link = document.createElement("a");
    link.href = `/login?next=${encodeURIComponent(location.pathname + location.search)}`;
    link.textContent = "Log in";
    // Here, so that nothing on the page is lost.
    link.addEventListener("click", (event) => {
      event.preventDefault();
      logIn();
    });
    status.append(" ", link);
  }
}

function close() {
  clearTimeout(timer);
  clearTimeout(silence);
  source?.close();
  source = undefined;
}

/** Nobody looks. */
function leave() {
  close();
  if (address) state("paused");
}

function connect() {
  close();
  if (!address || document.hidden) return;
  source = new EventSource(address);
  source.addEventListener("error", lost);
  source.addEventListener("hello", (event) => {
    pause = FIRST_PAUSE_MS;
    state("open");
    mark("");
    if (run !== undefined && run !== event.data)
      toast("The server restarted", "Counters continue where they were.", "", "note");
    run = event.data;
    document.dispatchEvent(new CustomEvent("live-hello"));
  });
  for (const name of handlers.keys()) {
    source.addEventListener(name, (event) => receive(name, event.data));
  }
  listenFor();
}

/** Takes the connection for broken when nothing comes. */
function listenFor() {
  clearTimeout(silence);
  silence = setTimeout(lost, SILENCE_MS);
}

function lost() {
  close();
  state("lost");
  mark("Reconnecting…");
  timer = setTimeout(again, pause * (0.8 + 0.4 * Math.random()));
  pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
}

/** Tries again, unless the reason is that nobody is logged in any more: then the login would answer. */
async function again() {
  try {
    const answer = await fetch(address, { method: "HEAD", redirect: "manual", cache: "no-store" });
    if (answer.type === "opaqueredirect" || answer.status === 401) {
      mark("You are logged out.", true);
      return;
    }
    if (answer.status === 404) {
      mark("This no longer exists.");
      // Or not yet: a server that was just started puts its functions back one by one.
      timer = setTimeout(again, LONGEST_PAUSE_MS);
      return;
    }
  } catch {
    // Not there yet.
  }
  if (!source) connect();
}

function receive(name, text) {
  listenFor();
  const data = JSON.parse(text);
  // Values are what changed: those of two events in one frame belong together.
  if (name === "values" && waiting.has(name)) {
    const before = waiting.get(name);
    for (const [kind, values] of Object.entries(data)) before[kind] = { ...before[kind], ...values };
  } else {
    waiting.set(name, data);
  }
  if (frame === 0) frame = requestAnimationFrame(apply);
}

function apply() {
  frame = 0;
  const events = waiting;
  waiting = new Map();
  for (const [name, data] of events) for (const handle of handlers.get(name) ?? []) handle(data);
}

function each(values, attribute, change) {
  if (!values) return;
  // A value may be shown at several places.
  for (const element of document.querySelectorAll(`[${attribute}]`)) {
    const key = element.getAttribute(attribute);
    if (Object.hasOwn(values, key)) change(element, values[key]);
  }
}

const grouped = new Intl.NumberFormat("en-US");

function showValues({ text, title, count, bar, html }) {
  each(text, "data-live", (element, value) => {
    if (element.textContent !== value) element.textContent = value;
  });
  each(title, "data-live", (element, value) => {
    element.title = value;
  });
  each(count, "data-count", (element, value) => {
    const shown = Math.max(Number(element.dataset.value), value);
    element.dataset.value = String(shown);
    element.textContent = grouped.format(shown);
  });
  each(bar, "data-bar", (element, value) => element.setAttribute("width", String(value)));
  each(html, "data-html", (element, value) => late.set(element, value));
  showLate();
}

/** What an element is to hold as soon as nobody is at it. */
const late = new Map();

function showLate() {
  let shown = false;
  for (const [element, value] of late) {
    if (element.isConnected && isHeld(element)) continue;
    late.delete(element);
    if (!element.isConnected) continue;
    element.innerHTML = value;
    shown = true;
  }
  if (shown) document.dispatchEvent(new CustomEvent("fresh"));
}

let refreshed = 0;
let refresh;

/** The functions of the list changed: it is fetched again, when its last time is not just now. */
function refreshStale() {
  const part = document.querySelector("[data-live-stale]");
  if (!part) return;
  const wait = Math.max(0, refreshed + REFRESH_MS - performance.now());
  clearTimeout(refresh);
  refresh = setTimeout(() => {
    const current = document.querySelector("[data-live-stale]");
    if (!current) return;
    refreshed = performance.now();
    if (isHeld(current)) {
      refreshStale();
      return;
    }
    window.htmx.ajax("GET", current.dataset.liveStale, { target: current, swap: "outerHTML" });
  }, wait);
}

/** Connects anew when the page's parts changed. */
function follow() {
  const wanted = topics();
  if (wanted === address && !wanted.startsWith("/live?list")) return;
  address = wanted;
  pause = FIRST_PAUSE_MS;
  connect();
}

export function setUpLive() {
  onLive("values", showValues);
  onLive("stale", refreshStale);
  setInterval(showLate, LATE_MS);
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.target.closest?.("[data-live-topic]") || event.target.querySelector?.("[data-live-topic]")) follow();
  });
  document.addEventListener("logged-in", () => {
    mark("");
    connect();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) leave();
    else connect();
  });
  // A page that is kept for the way back must hold no connection; when it is shown again, it is as old as it looks.
  addEventListener("pagehide", leave);
  addEventListener("pageshow", (event) => {
    if (event.persisted) connect();
  });
  follow();
}
