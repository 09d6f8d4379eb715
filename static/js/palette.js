// The command palette (Ctrl-K, Cmd-K, or its button) and the list of keyboard shortcuts (`?`).
//
// A dialog with a text field that owns a list box: the focus stays in the field, `aria-activedescendant` says which
// entry is chosen. Functions come from the server; pages and actions are the page's links and buttons with
// `data-command`.

import { setTheme } from "./theme.js";

/** How long typing pauses before functions are asked for. */
const PAUSE_MS = 80;

let dialog;
let field;
let list;
let entries = [];
let chosen = 0;
let asked = 0;
let timer;

/** Does what a press on it would. */
function follow(element) {
  if (element.href) location.assign(element.href);
  else element.click();
}

/** The pages of the function that is open, and calling it. */
function ofFunction() {
  const name = document.querySelector("h1.function-name")?.textContent.trim();
  if (!name) return [];
  const tabs = Array.from(document.querySelectorAll(".tabs a"), (tab) => ({
    label: `${name}: ${tab.textContent.trim()}`,
    kind: "Page",
    run: () => follow(tab),
  }));
  const call = document.getElementById("invoke-button") ?? document.getElementById("tab-test");
  return call ? [{ label: `Invoke ${name}`, kind: "Action", run: () => follow(call) }, ...tabs] : tabs;
}

/** Pages and actions of the open page: label, kind, and what it does. */
function commands() {
  const found = ofFunction();
  const seen = new Set();
  for (const element of document.querySelectorAll("[data-command]")) {
    const label = element.dataset.command;
    if (seen.has(label)) continue;
    seen.add(label);
    found.push({ label, kind: element.dataset.commandKind ?? "Page", run: () => follow(element) });
  }
  for (const theme of ["system", "light", "dark"]) {
    found.push({ label: `Theme: ${theme}`, kind: "Action", run: () => setTheme(theme) });
  }
  found.push({ label: "Keyboard shortcuts", kind: "Action", run: openHelp });
  return found;
}

/** Whether the letters are in the text in this order. */
function matches(search, text) {
  let at = 0;
  for (const letter of search) {
    at = text.indexOf(letter, at) + 1;
    if (at === 0) return false;
  }
  return true;
}

/** A text that begins so, or has a word that does, before one that merely holds the letters. */
function rank(search, text) {
  const at = text.indexOf(search);
  if (at === 0) return 0;
  if (at > 0) return text[at - 1] === " " ? 1 : 2;
  return 3;
}

async function functions(search) {
  const answer = await fetch(`/palette?q=${encodeURIComponent(search)}`, { headers: { accept: "application/json" } });
  if (!answer.ok || answer.redirected) return [];
  const found = await answer.json();
  return found.map(({ name, runtime, state }) => ({
    label: name,
    kind: `Function · ${runtime} · ${state}`,
    run: () => location.assign(`/functions/${encodeURIComponent(name)}`),
  }));
}

async function search() {
  const text = field.value.trim().toLowerCase();
  const mine = ++asked;
  const own = commands()
    .filter(({ label }) => matches(text, label.toLowerCase()))
    .sort((a, b) => rank(text, a.label.toLowerCase()) - rank(text, b.label.toLowerCase()));
  let found = [];
  try {
    found = await functions(text);
  } catch {
    // Without the server there are still pages and actions.
  }
  // A later question was asked meanwhile.
  if (mine !== asked) return;
  const first = text === "" ? [...own, ...found] : [...found, ...own];
  show(first);
}

function show(found) {
  entries = found;
  chosen = 0;
  const items = entries.map(({ label, kind }, at) => {
    const item = document.createElement("li");
    item.id = `palette-${at}`;
    item.setAttribute("role", "option");
    const name = document.createElement("span");
    name.textContent = label;
    const what = document.createElement("span");
    what.className = "soft";
    what.textContent = kind;
    item.append(name, what);
    return item;
  });
  list.replaceChildren(...items);
  dialog.querySelector("#palette-count").textContent =
    entries.length === 0 ? "No matches." : `${entries.length} ${entries.length === 1 ? "entry" : "entries"}`;
  choose(0);
}

function choose(at) {
  if (entries.length === 0) {
    field.removeAttribute("aria-activedescendant");
    return;
  }
  chosen = (at + entries.length) % entries.length;
  for (const [index, item] of Array.from(list.children).entries()) {
    item.setAttribute("aria-selected", String(index === chosen));
  }
  field.setAttribute("aria-activedescendant", `palette-${chosen}`);
  list.children[chosen].scrollIntoView({ block: "nearest" });
}

function run(at) {
  const entry = entries[at];
  if (!entry) return;
  dialog.close();
  entry.run();
}

function onKey(event) {
  if (event.isComposing) return;
  const moves = { ArrowDown: chosen + 1, ArrowUp: chosen - 1, PageDown: chosen + 8, PageUp: chosen - 8 };
  if (event.key in moves) {
    event.preventDefault();
    const last = entries.length - 1;
    choose(event.key.startsWith("Page") ? Math.min(Math.max(moves[event.key], 0), last) : moves[event.key]);
  } else if (event.key === "Enter") {
    event.preventDefault();
    run(chosen);
  }
}

/** Opens the palette. The dialog keeps the focus and gives it back by itself. */
export function openPalette() {
  if (!dialog || dialog.open) return;
  field.value = "";
  show(commands());
  dialog.showModal();
  field.focus();
  search();
}

function openHelp() {
  const help = document.getElementById("shortcuts");
  if (help && !help.open) help.showModal();
}

/** Whether keys are meant for what has the focus. */
function isTyping(target) {
  return target.closest?.("input, textarea, select, [contenteditable], .cm-editor") !== null;
}

export function setUpPalette() {
  dialog = document.getElementById("palette");
  if (!dialog) return;
  field = dialog.querySelector("input");
  list = dialog.querySelector("[role=listbox]");
  field.addEventListener("keydown", onKey);
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE_MS);
  });
  list.addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (item) run(Array.from(list.children).indexOf(item));
  });
  for (const box of document.querySelectorAll("dialog.overlay")) {
    // The dialog itself is hit only beside its content.
    box.addEventListener("click", (event) => {
      if (event.target === box) box.close();
    });
  }
  for (const button of document.querySelectorAll("[data-open-palette]")) {
    button.addEventListener("click", openPalette);
  }
  document.addEventListener("keydown", (event) => {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      openPalette();
    } else if (event.key === "?" && plain && !isTyping(event.target)) {
      event.preventDefault();
      openHelp();
    } else if (event.key === "/" && plain && !isTyping(event.target)) {
      const search = document.getElementById("list-search");
      if (!search) return;
      event.preventDefault();
      search.focus();
    }
  });
}
