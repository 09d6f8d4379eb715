// CodeMirror as the console uses it. Loaded only by pages that have an editor.

import {
  bracketMatching,
  Compartment,
  classHighlighter,
  closeBrackets,
  closeBracketsKeymap,
  css,
  defaultKeymap,
  drawSelection,
  EditorState,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSelectionMatches,
  highlightSpecialChars,
  history,
  historyKeymap,
  html,
  indentLess,
  indentMore,
  indentOnInput,
  indentUnit,
  javascript,
  json,
  jsonParseLinter,
  keymap,
  lineNumbers,
  linter,
  lintGutter,
  lintKeymap,
  markdown,
  python,
  search,
  searchKeymap,
  setDiagnostics,
  syntaxHighlighting,
} from "../vendor/codemirror/codemirror.js";

/** Longest line, in characters, of a file that is highlighted: beyond it the parser costs more than colours are worth. */
const MOST_HIGHLIGHTED = 5_000;

// Colours are the page's own custom properties, so that the editor follows its theme by itself.
const theme = EditorView.theme({
  "&": { backgroundColor: "var(--bg)", color: "var(--text)", fontSize: "0.875rem" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)", padding: "0.4rem 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--soft)", border: "none" },
  ".cm-activeLine": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--sunken) 60%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--focus) 28%, transparent)",
  },
  ".cm-selectionMatch": { backgroundColor: "var(--accent-wash)" },
  ".cm-searchMatch": { backgroundColor: "var(--busy-wash)", outline: "1px solid var(--busy)" },
  ".cm-searchMatch-selected": { backgroundColor: "var(--accent-wash)", outline: "2px solid var(--accent)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--good-wash)", outline: "1px solid var(--good)" },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "var(--bad-wash)" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-panel input": { minHeight: "1.8rem", width: "auto" },
  ".cm-textfield": { backgroundColor: "var(--bg)", border: "1px solid var(--line-strong)", color: "var(--text)" },
  ".cm-button": {
    backgroundImage: "none",
    backgroundColor: "var(--surface)",
    border: "1px solid var(--line-strong)",
    color: "var(--text)",
  },
  ".cm-tooltip": { backgroundColor: "var(--surface)", border: "1px solid var(--line-strong)", color: "var(--text)" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  // Not the images of the package: the browser holds the page's policy against the styles in them.
  ".cm-lint-marker-error": {
    content: "normal",
    width: "0.7em",
    height: "0.7em",
    margin: "0.15em",
    borderRadius: "50%",
    backgroundColor: "var(--bad)",
  },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--bad)",
    textDecorationSkipInk: "none",
    textUnderlineOffset: "3px",
  },
  ".cm-diagnosticText": { overflowWrap: "anywhere" },
});

function languageOf(name) {
  const extension = /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase() ?? name;
  switch (extension) {
    case "py":
    case "pyi":
      return [python(), indentUnit.of("    ")];
    case "js":
    case "mjs":
    case "cjs":
    case "jsx":
      return [javascript({ jsx: extension === "jsx" }), indentUnit.of("  ")];
    case "ts":
    case "mts":
      return [javascript({ typescript: true }), indentUnit.of("  ")];
    case "json":
      return [json(), indentUnit.of("  ")];
    case "css":
      return [css(), indentUnit.of("  ")];
    case "html":
    case "htm":
    case "svg":
    case "xml":
      return [html(), indentUnit.of("  ")];
    case "md":
      return [markdown(), indentUnit.of("  ")];
    default:
      return [indentUnit.of("    ")];
  }
}

const hasLongLine = (text) =>
  text.length > MOST_HIGHLIGHTED && text.split("\n").some((l) => l.length > MOST_HIGHLIGHTED);

/**
 * An editor.
 *
 * `name` is a file's name, which decides the language; `described` the ids of what describes it; `changed` is called with
 * the text after each change; `tabLeaves` says that Tab moves on and does not indent; `keys` are bindings that come before the editor's own.
 */
export class Editor {
  #language = new Compartment();
  #options;

  constructor({ parent, text, name, label, described, readOnly, tabLeaves = false, keys = [], changed }) {
    this.#options = { label, described, readOnly, tabLeaves, keys, changed };
    this.view = new EditorView({ parent, state: this.#state(text, name) });
  }

  #state(text, name) {
    const { label, described, readOnly, tabLeaves, keys, changed } = this.#options;
    const isJson = name.endsWith(".json");
    return EditorState.create({
      doc: text,
      extensions: [
        keymap.of(keys),
        lineNumbers(),
        highlightActiveLineGutter(),
        highlightSpecialChars(),
        history(),
        drawSelection(),
        EditorState.allowMultipleSelections.of(true),
        EditorState.readOnly.of(readOnly),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        highlightActiveLine(),
        highlightSelectionMatches(),
        search({ top: true }),
        lintGutter(),
        // Nothing typed yet is no mistake.
        isJson ? linter((view) => (view.state.doc.length === 0 ? [] : jsonParseLinter()(view)), { delay: 300 }) : [],
        keymap.of([
          // Ctrl+] and Ctrl+[ indent in either case.
          ...(tabLeaves ? [] : [{ key: "Tab", run: indentMore, shift: indentLess }]),
          ...closeBracketsKeymap,
          ...searchKeymap,
          ...lintKeymap,
          ...historyKeymap,
          ...defaultKeymap,
        ]),
        this.#language.of(hasLongLine(text) ? [] : languageOf(name)),
        syntaxHighlighting(classHighlighter),
        theme,
        EditorView.contentAttributes.of({
          "aria-label": label,
          // It can be reached without, but not everything that checks pages knows.
          tabindex: "0",
          ...(described ? { "aria-describedby": described } : {}),
          spellcheck: "false",
          autocapitalize: "off",
        }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) changed?.(update.state.doc.toString());
        }),
      ],
    });
  }

  get text() {
    return this.view.state.doc.toString();
  }

  /** Replaces the text; undo takes it back. */
  set text(text) {
    if (text === this.text) return;
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  /** What is needed to come back to this text with its undo history and its cursor. */
  get state() {
    return this.view.state;
  }

  /** Shows another text, as it was left (`state`) or anew. */
  show({ state, text, name }) {
    this.view.setState(state ?? this.#state(text, name));
  }

  /** The language follows the file's name. */
  rename(name) {
    this.view.dispatch({ effects: this.#language.reconfigure(languageOf(name)) });
  }

  /** Marks a line with a message, and shows it. */
  mark(number, message) {
    const { doc } = this.view.state;
    const line = doc.line(Math.min(Math.max(number, 1), doc.lines));
    const from = line.from + /^\s*/.exec(line.text)[0].length;
    const diagnostic = { from: Math.min(from, line.to), to: line.to, severity: "error", message };
    this.view.dispatch(setDiagnostics(this.view.state, [diagnostic]));
    this.view.dispatch({
      selection: { anchor: diagnostic.from },
      effects: EditorView.scrollIntoView(diagnostic.from, { y: "center" }),
    });
  }

  /** Takes the marks away. */
  unmark() {
    this.view.dispatch(setDiagnostics(this.view.state, []));
  }

  focus() {
    this.view.focus();
  }
}
