// Live lists of calls: an element with `data-calls="URL"` around a table gets new rows when the page's stream reports a
// finished call, at most every `data-every` milliseconds. Rows are matched by id, so existing ones stay the same
// elements. While the user interacts with the rows, or the list is paused, new rows wait behind a button that shows
// their number.

import { isHeld } from "./hold.js";
import { onLive } from "./live.js";

const TICK_MS = 250;
/** Events of the stream so far; a connection that is made again may have missed something. */
let events = 0;
const lists = new Map();

const idOf = (row) => row.dataset.invocation;
const rowsOf = (root) => Array.from(root.querySelectorAll("tr[data-invocation]"));

class List {
  constructor(area) {
    this.area = area;
    this.card = area.closest("section");
    this.button = this.card.querySelector("[data-calls-new]");
    this.state = this.card.querySelector("[data-calls-state]");
    this.pause = this.card.querySelector("[data-calls-pause]");
    this.paused = false;
    this.busy = false;
    this.asked = performance.now();
    /** The events when the newest rows were requested: they may lack later ones. */
    this.asOf = events;
    /** The newest answer that is not shown, and the ids that were in any such answer. */
    this.waiting = undefined;
    this.unseen = new Set();
    /** Whether more came between two answers than one holds. */
    this.atLeast = false;
    this.card.querySelector("[data-calls-controls]").hidden = false;
    this.pause.addEventListener("click", () => this.toggle());
    this.button.addEventListener("click", () => this.show());
  }

  toggle() {
    this.paused = !this.paused;
    this.pause.textContent = this.paused ? "Resume" : "Pause";
    this.pause.setAttribute("aria-pressed", String(this.paused));
    this.state.textContent = this.paused ? "Paused" : "Live";
    this.state.classList.toggle("live", !this.paused);
    if (!this.paused) this.show();
  }

  tick(now) {
    if (this.waiting && !this.paused && !isHeld(this.area)) this.show();
    if (this.asOf !== events && !this.busy && now - this.asked >= Number(this.area.dataset.every)) this.ask();
  }

  async ask() {
    this.busy = true;
    this.asked = performance.now();
    const seen = events;
    try {
      const headers = { "hx-request": "true", "hx-trigger": this.card.id };
      const answer = await fetch(this.area.dataset.calls, { headers, cache: "no-store", redirect: "manual" });
      this.asOf = seen;
      // Whatever is wrong, the page's stream tells of it.
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      this.take(page);
    } catch {
      // The next tick tries again.
    } finally {
      this.busy = false;
    }
  }

  take(page) {
    const fresh = rowsOf(page).map(idOf);
    const known = new Set(rowsOf(this.area).map(idOf));
    const isNew = fresh.filter((id) => !known.has(id));
    if (isNew.length === 0) return;
    this.atLeast ||= known.size > 0 && fresh.every((id) => !known.has(id) && !this.unseen.has(id));
    for (const id of isNew) this.unseen.add(id);
    this.waiting = page;
    if (!this.paused && !isHeld(this.area)) this.show();
    else this.announce();
  }

  announce() {
    const count = this.unseen.size;
    this.button.textContent = `${count}${this.atLeast ? "+" : ""} new ${count === 1 ? "call" : "calls"}`;
    this.button.classList.toggle("none", count === 0);
  }

  /** Puts the rows that are missing where they belong and takes off what has become too old. */
  show() {
    const page = this.waiting;
    this.waiting = undefined;
    this.unseen.clear();
    this.atLeast = false;
    this.announce();
    if (!page) return;
    const body = this.area.querySelector("tbody");
    if (!body) {
      this.area.replaceChildren(...page.querySelector("[data-calls]").childNodes);
    } else {
      const known = new Map(rowsOf(body).map((row) => [idOf(row), row]));
      const fresh = rowsOf(page);
      let next = body.firstElementChild;
      for (const row of fresh) {
        const here = known.get(idOf(row));
        if (here) next = here.nextElementSibling;
        else body.insertBefore(row, next);
      }
      while (body.childElementCount > fresh.length) body.lastElementChild.remove();
    }
    this.page(page);
    document.dispatchEvent(new CustomEvent("fresh"));
  }

  /** The way to older rows follows the oldest that is shown. */
  page(page) {
    const wanted = page.querySelector("[data-calls-older]");
    const here = this.card.querySelector("[data-calls-older]");
    if (!wanted) return;
    if (!here) {
      this.card.append(wanted.closest(".pager"));
      window.htmx.process(this.card.querySelector(".pager"));
      return;
    }
    for (const name of ["href", "hx-get"]) here.setAttribute(name, wanted.getAttribute(name));
    // It reads its address anew.
    window.htmx.process(here);
  }
}

function find() {
  for (const area of document.querySelectorAll("[data-calls]")) {
    if (!lists.has(area)) lists.set(area, new List(area));
  }
  for (const area of lists.keys()) if (!area.isConnected) lists.delete(area);
}

export function setUpRows() {
  const changed = () => {
    events += 1;
  };
  find();
  onLive("called", changed);
  // What finishes after the page was made and before its stream begins, the stream does not tell of: its beginning counts
  // as news.
  document.addEventListener("live-hello", changed);
  document.addEventListener("htmx:afterSwap", () => {
    find();
    changed();
  });
  // The test panel's own call is shown at once.
  document.addEventListener("invoked", () => {
    changed();
    for (const list of lists.values()) list.ask();
  });
  const tick = () => {
    if (document.hidden) return;
    const now = performance.now();
    for (const list of lists.values()) list.tick(now);
  };
  setInterval(tick, TICK_MS);
  document.addEventListener("visibilitychange", tick);
}
