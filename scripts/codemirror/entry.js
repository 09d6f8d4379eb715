// The parts of CodeMirror 6 that the console's editor uses (static/js/codemirror.js), and nothing else.

import { StyleModule } from "style-mod";

// style-mod puts a document's rules into a <style> element, which the console's content security policy forbids.
// Constructed sheets are no inline styles. As its own `mount` does: each module once for each root, those named later
// take precedence.

/** The sheet of each module. */
const sheets = new WeakMap();
/** The modules of each root, in order. */
const mounted = new WeakMap();

StyleModule.mount = (root, modules) => {
  const wanted = Array.isArray(modules) ? modules : [modules];
  const present = mounted.get(root) ?? [];
  if (wanted.every((module) => present.includes(module))) return;
  const ordered = [...present.filter((module) => !wanted.includes(module)), ...wanted];
  const sheetOf = (module) => {
    if (!sheets.has(module)) {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(module.getRules());
      sheets.set(module, sheet);
    }
    return sheets.get(module);
  };
  const own = new Set([...present, ...wanted].map(sheetOf));
  const others = Array.from(root.adoptedStyleSheets).filter((sheet) => !own.has(sheet));
  root.adoptedStyleSheets = [...others, ...ordered.map(sheetOf)];
  mounted.set(root, ordered);
};

export { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap, indentLess, indentMore } from "@codemirror/commands";
export { css } from "@codemirror/lang-css";
export { html } from "@codemirror/lang-html";
export { javascript } from "@codemirror/lang-javascript";
export { json, jsonParseLinter } from "@codemirror/lang-json";
export { markdown } from "@codemirror/lang-markdown";
export { python } from "@codemirror/lang-python";
export {
  bracketMatching,
  foldGutter,
  foldKeymap,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
export { forceLinting, lintGutter, lintKeymap, linter, setDiagnostics } from "@codemirror/lint";
export { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
export { Compartment, EditorState } from "@codemirror/state";
export {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
export { classHighlighter } from "@lezer/highlight";
