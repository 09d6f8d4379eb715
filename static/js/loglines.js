// Renders log lines: terminal colours, JSON folded into its fields, long lines clamped to three.

const ESC = String.fromCharCode(27);
/** Colours and weights; whatever else a terminal would act on is left out. */
const SGR = new RegExp(`${ESC}\\[([0-9;:]*)m`);
const CONTROL = new RegExp(
  `(${ESC}\\[[0-?]*[ -/]*[@-~]|${ESC}\\][^${ESC}]*?(?:${String.fromCharCode(7)}|${ESC}\\\\)|${ESC}[ -~]?)`,
);
/** Shorter lines need no look at their height. */
const LONG = 80;
/** The fields that say what a line is about, and how grave it is. */
const MESSAGE = ["message", "msg", "event", "error"];
const LEVEL = ["level", "severity", "lvl", "levelname"];
/** More of an object is not folded: it is data and not a line of a log. */
const MOST_FIELDS = 100;

/** The classes after these codes. Colours of 256 and more are left to the theme. */
function after(codes, state) {
  const numbers = codes === "" ? [0] : codes.split(/[;:]/).map(Number);
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at];
    if (code === 38 || code === 48) {
      at += numbers[at + 1] === 2 ? 4 : 2;
      state.delete(code === 38 ? "color" : "ground");
    } else if (code === 0) state.clear();
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) state.set("color", `sgr-${code}`);
    else if (code === 39) state.delete("color");
    else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107)) state.set("ground", `sgr-${code}`);
    else if (code === 49) state.delete("ground");
    else if (code === 1 || code === 2) state.set("weight", code === 1 ? "sgr-bold" : "sgr-dim");
    else if (code === 22) state.delete("weight");
    else if (code === 3 || code === 23) toggle(state, "style", code === 3 && "sgr-italic");
    else if (code === 4 || code === 24) toggle(state, "line", code === 4 && "sgr-underline");
  }
}

function toggle(state, key, value) {
  if (value) state.set(key, value);
  else state.delete(key);
}

/** Replaces the codes in an element's text, across what marks parts of it. */
function colour(element) {
  const state = new Map();
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  for (const node of nodes) {
    const pieces = node.data.split(CONTROL);
    if (pieces.length === 1 && state.size === 0) continue;
    const made = document.createDocumentFragment();
    pieces.forEach((piece, index) => {
      if (index % 2 === 1) {
        const codes = SGR.exec(piece);
        if (codes) after(codes[1], state);
      } else if (piece !== "") {
        const classes = Array.from(state.values());
        if (classes.length === 0) made.append(piece);
        else {
          const span = document.createElement("span");
          span.className = classes.join(" ");
          span.textContent = piece;
          made.append(span);
        }
      }
    });
    node.replaceWith(made);
  }
}

function objectIn(text) {
  if (!text.startsWith("{") || !text.endsWith("}")) return undefined;
  try {
    const value = JSON.parse(text);
    const count = Object.keys(value).length;
    return count > 0 && count <= MOST_FIELDS ? value : undefined;
  } catch {
    return undefined;
  }
}

const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value));

/** A line that is a JSON object: what it says, and its fields behind that. */
function fold(element, object) {
  const name = (names) => names.find((key) => ["string", "number"].includes(typeof object[key]));
  const message = name(MESSAGE);
  const level = name(LEVEL);
  const details = document.createElement("details");
  details.className = "log-fields";
  const summary = document.createElement("summary");
  if (level) {
    const badge = document.createElement("span");
    badge.className = "log-level";
    badge.dataset.level = String(object[level]).toLowerCase();
    badge.textContent = object[level];
    summary.append(badge, " ");
  }
  const words = document.createElement("span");
  words.className = "log-message";
  words.textContent = message ? object[message] : element.textContent.trim();
  summary.append(words);
  const list = document.createElement("dl");
  for (const [key, value] of Object.entries(object)) {
    const row = document.createElement("div");
    const term = document.createElement("dt");
    term.textContent = key;
    const text = document.createElement("dd");
    text.textContent = shown(value);
    row.append(term, text);
    list.append(row);
  }
  details.append(summary, list);
  element.replaceChildren(details);
}

/** Cuts what is longer than three lines here, and offers the rest. */
function clamp(elements) {
  for (const element of elements) element.classList.add("clamped");
  // All are measured before any is changed.
  const cut = elements.map((element) => element.scrollHeight > element.clientHeight + 1);
  elements.forEach((element, index) => {
    if (!cut[index]) {
      element.classList.remove("clamped");
      return;
    }
    const more = document.createElement("button");
    more.type = "button";
    more.className = "log-more";
    more.textContent = "more";
    more.setAttribute("aria-expanded", "false");
    more.addEventListener("click", () => {
      const closed = element.classList.toggle("clamped");
      more.textContent = closed ? "more" : "less";
      more.setAttribute("aria-expanded", String(!closed));
    });
    element.after(more);
  });
}

/** Makes lines readable that are on the page for the first time. */
export function dress(items) {
  const long = [];
  for (const item of items) {
    const text = item.querySelector(".log-text");
    if (!text || item.dataset.dressed !== undefined) continue;
    item.dataset.dressed = "";
    if (text.textContent.includes(ESC)) colour(text);
    const object = text.querySelector("mark, span") ? undefined : objectIn(text.textContent.trim());
    if (object) fold(text, object);
    else if (text.textContent.length > LONG || text.textContent.includes("\n")) long.push(text);
  }
  clamp(long);
}

export function setUpLogLines() {
  const all = () => dress(document.querySelectorAll("ol.logs > li"));
  all();
  document.addEventListener("htmx:afterSwap", all);
}
