// The code editor: a textarea in which Tab indents, Enter keeps the indentation, and lines are numbered.

const INDENT = "    ";
/** Numbering more lines than this would slow typing down; nobody reads them. */
const MOST_NUMBERED = 20_000;

/** Replaces the selection such that undo takes it back. */
function insert(area, text) {
  // Deprecated, and still the only way that keeps the undo history.
  const done = text === "" ? document.execCommand("delete") : document.execCommand("insertText", false, text);
  if (!done) {
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

const lineStart = (area, at) => area.value.lastIndexOf("\n", at - 1) + 1;

/** Indents or dedents every line of the selection. */
function shift(area, outwards) {
  const first = lineStart(area, area.selectionStart);
  const last = area.selectionEnd;
  const lines = area.value.slice(first, last).split("\n");
  const shifted = lines.map((line) => (outwards ? line.replace(/^( {1,4}|\t)/, "") : line && INDENT + line));
  area.setSelectionRange(first, last);
  insert(area, shifted.join("\n"));
  area.setSelectionRange(first, first + shifted.join("\n").length);
}

function tab(area, outwards) {
  const { selectionStart: start, selectionEnd: end } = area;
  if (start !== end) {
    shift(area, outwards);
  } else if (outwards) {
    const first = lineStart(area, start);
    const spaces = /^( {1,4}|\t)/.exec(area.value.slice(first, area.value.length))?.[0].length ?? 0;
    if (spaces > 0) {
      area.setSelectionRange(first, first + spaces);
      insert(area, "");
      area.setSelectionRange(Math.max(first, start - spaces), Math.max(first, start - spaces));
    }
  } else {
    const column = start - lineStart(area, start);
    insert(area, " ".repeat(INDENT.length - (column % INDENT.length)));
  }
}

function newLine(area) {
  const before = area.value.slice(lineStart(area, area.selectionStart), area.selectionStart);
  const indent = /^[ \t]*/.exec(before)[0];
  insert(area, `\n${indent}${/:\s*(#.*)?$/.test(before) ? INDENT : ""}`);
}

function onKey(event) {
  const area = event.currentTarget;
  const plain = !event.ctrlKey && !event.altKey && !event.metaKey;
  if (event.key === "Escape") {
    // The way out for the keyboard: the next Tab moves the focus.
    area.dataset.leaving = "true";
    return;
  }
  const leaving = area.dataset.leaving === "true";
  if (event.key !== "Shift") delete area.dataset.leaving;
  if (event.key === "Tab" && plain && !leaving) {
    event.preventDefault();
    tab(area, event.shiftKey);
  } else if (event.key === "Enter" && plain && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    newLine(area);
  }
}

function number(area, gutter) {
  const lines = Math.min(area.value.split("\n").length, MOST_NUMBERED);
  if (Number(gutter.dataset.lines) !== lines) {
    gutter.dataset.lines = String(lines);
    gutter.textContent = Array.from({ length: lines }, (_, index) => index + 1).join("\n");
  }
  gutter.scrollTop = area.scrollTop;
}

export function setUpEditors() {
  for (const area of document.querySelectorAll("textarea[data-editor]")) {
    const gutter = area.parentElement.querySelector(".gutter");
    const renumber = () => number(area, gutter);
    area.addEventListener("keydown", onKey);
    area.addEventListener("blur", () => delete area.dataset.leaving);
    area.addEventListener("input", renumber);
    area.addEventListener("scroll", renumber);
    renumber();
  }
}
