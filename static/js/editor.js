// A textarea with `data-editor="FILE NAME"` is covered by an editor and stays what the form sends. Where the browser
// cannot have the editor without inline styles, the textarea is used as it is.

/** The editors by their textarea. */
const editors = new WeakMap();
const waiting = new WeakMap();

/** The editor of a textarea, or nothing while or because it has none. */
export const editorOf = (area) => editors.get(area);

/** Resolves when the textarea's editor is there, or it is known that there will be none. */
export const editorReady = (area) => waiting.get(area) ?? Promise.resolve(undefined);

/** Focuses a field, or the editor that covers it. */
export function focusField(field) {
  (editors.get(field) ?? field).focus();
}

function cover(area, Editor) {
  const label = document.querySelector(`label[for="${area.id}"]`)?.textContent.trim() ?? "Editor";
  const box = document.createElement("div");
  box.className = "editor-box";
  box.id = `${area.id}-box`;
  area.after(box);
  const keys = [];
  if (area.dataset.submit !== undefined) {
    keys.push({
      key: "Mod-Enter",
      run: () => {
        area.form.requestSubmit();
        return true;
      },
    });
  }
  if (area.dataset.save) {
    keys.push({
      key: "Mod-s",
      run: () => {
        document.getElementById(area.dataset.save)?.click();
        return true;
      },
      preventDefault: true,
    });
  }
  let syncing = false;
  const editor = new Editor({
    parent: box,
    text: area.value,
    name: area.dataset.editor,
    label,
    described: area.getAttribute("aria-describedby"),
    readOnly: area.readOnly,
    tabLeaves: area.dataset.tab === "leaves",
    keys,
    changed: (text) => {
      if (syncing) return;
      area.value = text;
      syncing = true;
      area.dispatchEvent(new Event("input", { bubbles: true }));
      syncing = false;
    },
  });
  // Whatever else sets the textarea says so by an event.
  area.addEventListener("input", () => {
    if (syncing) return;
    syncing = true;
    editor.text = area.value;
    syncing = false;
  });
  area.closest(".editor")?.classList.add("covered");
  // Messages are shown at the textarea; the editor's frame takes them on.
  new MutationObserver(() => {
    box.toggleAttribute("data-invalid", area.getAttribute("aria-invalid") === "true");
  }).observe(area, { attributes: true, attributeFilter: ["aria-invalid"] });
  editors.set(area, editor);
  return editor;
}

export function setUpEditors() {
  const areas = document.querySelectorAll("textarea[data-editor]");
  if (areas.length === 0 || !("adoptedStyleSheets" in document)) return;
  const loaded = import("./codemirror.js");
  for (const area of areas) {
    waiting.set(
      area,
      loaded.then(({ Editor }) => cover(area, Editor)).catch(() => undefined),
    );
  }
}
