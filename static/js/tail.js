// Follows a function's log: `<ol data-tail="URL" data-base="/functions/NAME">` gets lines from a stream of JSON
// objects, one per line, as they are written. Only while the page is visible; paused and resumed by #tail-pause.

import { dress } from "./loglines.js";
import { absolute, clock, day, putDays } from "./times.js";

/** Lines kept on the page; the oldest leave it. */
const MOST_LINES = 1000;
/** Pause before the first attempt to connect again, doubled up to the second. */
const RETRY_FIRST_MS = 500;
const RETRY_LONGEST_MS = 10_000;
/** How near to its end, in pixels, a list counts as being at its end. */
const NEAR_END = 24;

const SHORT_ID = 6;

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** A line as the server's template draws it. */
function row(entry, base) {
  if (entry.skipped !== undefined) {
    return element("li", "log-skipped", `… ${entry.skipped} lines skipped: too fast to show`);
  }
  const item = element("li", `log-${entry.stream}`);
  const time = element("time", "", clock(entry.time));
  time.dateTime = entry.time;
  time.title = absolute(entry.time);
  let origin;
  if (entry.invocation) {
    origin = element("a", "log-link", entry.invocation.slice(-SHORT_ID));
    origin.href = `${base}/invocations/${entry.invocation}`;
    origin.title = `Invocation ${entry.invocation}`;
  } else {
    origin = element("span", "log-link soft", "import");
    origin.title = "Printed during import";
  }
  item.append(
    time,
    " ",
    element("span", "stream", entry.stream),
    " ",
    element("span", "log-text", entry.text),
    " ",
    origin,
  );
  return item;
}

class Tail {
  constructor(list) {
    this.list = list;
    this.pause = document.getElementById("tail-pause");
    this.state = document.getElementById("tail-state");
    this.empty = document.getElementById("log-empty");
    this.paused = false;
    this.waiting = [];
    this.frame = 0;
    this.retry = RETRY_FIRST_MS;
    /** Whether the next lines replace what is there: a stream begins with the newest stored ones. */
    this.fresh = true;
    this.pause.addEventListener("click", () => this.toggle());
    document.getElementById("tail-controls").hidden = false;
    this.visibility = () => this.update();
    document.addEventListener("visibilitychange", this.visibility);
    list.scrollTop = list.scrollHeight;
    this.update();
  }

  /** Whether the list is still on the page; a search swaps it out. */
  get gone() {
    return !this.list.isConnected;
  }

  toggle() {
    this.paused = !this.paused;
    this.pause.textContent = this.paused ? "Resume" : "Pause";
    this.pause.setAttribute("aria-pressed", String(this.paused));
    this.update();
  }

  say(text, live) {
    this.state.textContent = text;
    this.state.classList.toggle("live", live);
  }

  /** Connects or lets go, as the page now is. */
  update() {
    if (this.gone) {
      document.removeEventListener("visibilitychange", this.visibility);
    }
    const wanted = !this.gone && !this.paused && !document.hidden;
    if (wanted && !this.connection) {
      this.connect();
    } else if (!wanted && this.connection) {
      this.connection.abort();
      this.connection = undefined;
      this.waiting = [];
    }
    if (this.paused) this.say("Paused", false);
  }

  async connect() {
    const connection = new AbortController();
    this.connection = connection;
    try {
      const answer = await fetch(this.list.dataset.tail, { signal: connection.signal });
      if (answer.status === 401) {
        // The session has ended: the server leads to the login and back.
        location.reload();
        return;
      }
      if (!answer.ok || !answer.body) throw new Error(`status ${answer.status}`);
      this.say("Live", true);
      this.retry = RETRY_FIRST_MS;
      this.fresh = true;
      await this.read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
    } catch {
      // Below: whatever ended the stream, another attempt is made.
    }
    if (this.connection !== connection) return;
    this.say("Reconnecting…", false);
    const pause = this.retry;
    this.retry = Math.min(2 * pause, RETRY_LONGEST_MS);
    setTimeout(() => {
      if (this.connection !== connection) return;
      this.connection = undefined;
      this.update();
    }, pause);
  }

  async read(reader) {
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done || this.gone) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) this.waiting.push(line);
      // What would leave the page again at once need not be drawn.
      if (this.waiting.length > MOST_LINES) this.waiting.splice(0, this.waiting.length - MOST_LINES);
      this.frame ||= requestAnimationFrame(() => this.draw());
    }
    await reader.cancel().catch(() => {});
    if (this.gone) this.update();
  }

  /** A heading for each day; a list that is as long as it may be has lost its first one. */
  days(rows) {
    const { list } = this;
    const newest = rows.at(-1)?.querySelector("time");
    const today = newest && day(newest.dateTime);
    if (today === this.day && list.firstElementChild?.classList.contains("log-day")) return;
    this.day = today;
    putDays(list);
    while (list.childElementCount > MOST_LINES) list.children[1].remove();
  }

  draw() {
    this.frame = 0;
    if (this.waiting.length === 0) return;
    const { list } = this;
    const follows = list.hidden || list.scrollHeight - list.scrollTop - list.clientHeight < NEAR_END;
    const rows = this.waiting.map((line) => row(JSON.parse(line), list.dataset.base));
    this.waiting = [];
    if (this.fresh) {
      list.replaceChildren(...rows);
      this.fresh = false;
    } else {
      list.append(...rows);
    }
    list.hidden = false;
    dress(rows);
    const before = list.scrollHeight;
    while (list.childElementCount > MOST_LINES) list.firstElementChild.remove();
    this.days(rows);
    if (this.empty) this.empty.hidden = true;
    // Who reads further up keeps the lines under their eyes.
    list.scrollTop = follows ? list.scrollHeight : list.scrollTop - (before - list.scrollHeight);
  }
}

export function setUpTail() {
  const start = () => {
    const list = document.querySelector("[data-tail]:not([data-tailed])");
    if (!list) return;
    list.dataset.tailed = "";
    new Tail(list);
  };
  start();
  // A search that is left again brings a list of its own.
  document.addEventListener("htmx:afterSwap", start);
}
