// The code page: a tree of files, one of them in the editor, edits of several kept until they are deployed together.

import { ask } from "./confirm.js";
import { clock, Draft } from "./drafts.js";
import { editorOf, editorReady } from "./editor.js";
import { basename, CodeFile } from "./file.js";
import { Review } from "./review.js";
import { fetchHere } from "./session.js";
import { toast } from "./toast.js";
import { watchUnsaved } from "./unsaved.js";

/** Pause after a change before the draft is kept. */
const DRAFT_MS = 300;

class Workbench {
  constructor(form) {
    this.form = form;
    this.name = form.dataset.workbench;
    this.version = form.dataset.version;
    this.area = form.querySelector("#code-editor");
    this.path = form.querySelector("#path");
    this.tree = form.querySelector("#file-tree");
    this.note = form.querySelector("#file-note");
    this.kept = form.querySelector("#file-kept");
    this.pane = form.querySelector("#file-editor");
    this.summary = form.querySelector("#edit-summary");
    this.deleteButton = form.querySelector("#delete-file");
    this.edits = form.elements.namedItem("edits");
    this.mayWrite = Boolean(this.deleteButton);
    /** By path in the version, new ones by an own key. */
    this.files = new Map();
    this.current = this.first();
    this.draft = new Draft(this.name, this.version);
  }

  first() {
    const origin = this.form.elements.namedItem("opened").value || undefined;
    const kind = this.pane.hidden ? (this.kept.textContent.includes("large") ? "large" : "binary") : "text";
    const [path, size, text] = [this.path.value, this.note.textContent, this.area.value];
    const file = new CodeFile({ origin, path, kind, size, text });
    this.files.set(origin ?? file, file);
    return file;
  }

  async start() {
    this.tree.addEventListener("click", (event) => {
      const link = event.target.closest("a[data-file]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.open(link.dataset.file);
    });
    this.tree.addEventListener("htmx:afterSwap", () => this.paint());
    if (!this.mayWrite) {
      await editorReady(this.area);
      this.paint();
      return;
    }
    this.deleteButton.hidden = false;
    this.area.addEventListener("input", () => {
      if (this.switching) return;
      this.current.text = this.area.value;
      this.paint();
    });
    this.path.addEventListener("input", () => {
      this.current.path = this.path.value;
      editorOf(this.area)?.rename(this.path.value);
      this.paint();
    });
    this.path.addEventListener("keydown", (event) => {
      // Enter is done with the name, not with the whole form.
      if (event.key !== "Enter") return;
      event.preventDefault();
      editorOf(this.area)?.focus();
    });
    this.form.querySelector("#new-file").addEventListener("click", (event) => {
      event.preventDefault();
      this.create();
    });
    this.deleteButton.addEventListener("click", () => this.remove());
    // Before htmx reads the form.
    for (const type of ["click", "submit"]) {
      document.addEventListener(type, () => this.write(), true);
    }
    watchUnsaved(() => this.changed().length > 0);
    const review = new Review(this, this.form, this.area);
    review.start();
    this.setUpDraft();
    await editorReady(this.area);
    this.paint();
    review.showProblem();
  }

  changed() {
    return Array.from(this.files.values()).filter((file) => file.isChanged);
  }

  write() {
    const changed = this.changed();
    this.edits.value = changed.length > 0 ? JSON.stringify(changed.map((file) => file.edit)) : "[]";
  }

  async open(path) {
    const known = this.files.get(path) ?? Array.from(this.files.values()).find((file) => file.path === path);
    if (known) {
      this.show(known);
      return known;
    }
    const file = await this.load(path);
    if (file) this.show(file);
    return file;
  }

  /** Shows the file that has this path now. Resolves to whether it is text. */
  async showText(path) {
    const file = Array.from(this.files.values()).find((known) => known.path === path) ?? (await this.open(path));
    if (file?.kind !== "text") return false;
    if (file !== this.current) this.show(file);
    return true;
  }

  /** A file of the version that is not in the editor yet. */
  async load(path) {
    const query = new URLSearchParams({ version: this.version, path });
    const response = await fetchHere(`/functions/${this.name}/code/file?${query}`);
    if (!response?.ok) {
      toast("Could not open the file", path, response?.headers.get("x-request-id") ?? "");
      return undefined;
    }
    const { kind, text, size } = await response.json();
    const file = new CodeFile({ origin: path, path, kind, size, text });
    this.files.set(path, file);
    return file;
  }

  /** Keeps what is written, and offers what was kept the last time. */
  setUpDraft() {
    const kept = this.draft.read();
    const offer = document.getElementById("draft");
    const answered = () => {
      this.offered = false;
      offer.hidden = true;
    };
    if (kept) {
      this.offered = true;
      document.getElementById("draft-restore").textContent = `Restore draft from ${clock(kept.at)}`;
      offer.hidden = false;
      document.getElementById("draft-restore").addEventListener("click", async () => {
        if (await this.restore(kept.files)) answered();
      });
      document.getElementById("draft-discard").addEventListener("click", () => {
        answered();
        this.draft.forget();
      });
    }
    addEventListener("pagehide", () => this.keep());
    document.addEventListener("htmx:beforeOnLoad", ({ detail: { xhr, elt } }) => {
      if (elt !== this.form || xhr.status !== 200 || !xhr.getResponseHeader("hx-redirect")) return;
      this.deployed = true;
      this.draft.forget();
    });
  }

  keep() {
    clearTimeout(this.timer);
    const changed = this.changed();
    // A draft that is still offered is not lost to a page on which nothing was written yet.
    if (this.deployed || (this.offered && changed.length === 0)) return;
    this.offered = false;
    document.getElementById("draft").hidden = true;
    this.draft.write(changed.map((file) => file.kept));
  }

  async restore(files) {
    let shown;
    for (const { origin, path, kind, size, text } of files) {
      let file;
      if (origin === undefined) {
        file = new CodeFile({ path, kind, size, text });
        this.files.set(file, file);
      } else {
        file = this.files.get(origin) ?? (await this.load(origin));
        if (!file) return false;
        Object.assign(file, { path, text, state: undefined });
      }
      if (file === this.current || !shown) shown = file;
    }
    // What is in the editor is from before.
    this.show(shown, true);
    return true;
  }

  show(file, anew = false) {
    const editor = editorOf(this.area);
    if (!anew && editor && this.current.kind === "text") this.current.state = editor.state;
    this.current = file;
    const isText = file.kind === "text";
    this.path.value = file.path ?? file.origin ?? "";
    this.path.readOnly = !this.mayWrite || file.isDeleted;
    this.note.textContent = file.isNew ? "new file" : file.size;
    this.pane.hidden = !isText || file.isDeleted;
    this.area.disabled = !isText;
    this.kept.hidden = isText && !file.isDeleted;
    this.kept.textContent = file.isDeleted
      ? "This file will be deleted."
      : file.kind === "binary"
        ? "This file is not text. It is kept as is."
        : "This file is too large to edit here. It is kept as is.";
    this.switching = true;
    this.area.value = isText ? file.text : "";
    editor?.show({ state: file.state, text: this.area.value, name: file.path ?? "" });
    this.switching = false;
    if (this.deleteButton) this.deleteButton.textContent = file.isDeleted ? "Keep file" : "Delete file";
    if (!file.isNew) {
      const address = new URL(location.href);
      address.search = new URLSearchParams({ path: file.origin }).toString();
      history.replaceState(history.state, "", address);
    }
    this.paint();
  }

  create() {
    const file = new CodeFile({ path: "", kind: "text", size: "", text: "" });
    this.files.set(file, file);
    this.show(file);
    this.path.focus();
  }

  async remove() {
    const file = this.current;
    if (file.isDeleted) {
      file.path = file.origin;
    } else if (file.isNew) {
      if (file.text.trim() !== "") {
        const sure = await ask({
          title: "Discard the new file?",
          text: "It was never deployed and cannot be recovered.",
          action: "Discard",
          danger: true,
        });
        if (!sure) return;
      }
      this.files.delete(file);
      const other = Array.from(this.files.values())[0];
      if (other) this.show(other);
      else this.create();
      return;
    } else {
      file.path = undefined;
    }
    this.show(file);
  }

  /** Marks in the tree what is open, changed, new or deleted. */
  paint() {
    for (const mark of this.tree.querySelectorAll("[data-new-file]")) mark.remove();
    for (const link of this.tree.querySelectorAll("a[data-file]")) {
      const file = this.files.get(link.dataset.file);
      link.toggleAttribute("aria-current", file === this.current);
      if (file === this.current) link.setAttribute("aria-current", "true");
      link.classList.toggle("file-changed", Boolean(file?.isChanged) && !file.isDeleted);
      link.classList.toggle("file-deleted", Boolean(file?.isDeleted));
      const name = link.querySelector(".file-name");
      name.textContent =
        file?.path && file.path !== file.origin ? `${file.origin} → ${file.path}` : basename(link.dataset.file);
    }
    for (const file of this.files.values()) {
      if (file.isNew && !file.isDeleted) this.tree.querySelector("ul")?.append(this.newEntry(file));
    }
    if (!this.summary) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.keep(), DRAFT_MS);
    const changed = this.changed();
    const said = changed.length === 1 ? "1 file changed" : `${changed.length} files changed`;
    this.summary.hidden = changed.length === 0;
    this.summary.textContent = `${said}: ${changed.map((file) => file.path || file.origin || "new file").join(", ")}`;
  }

  newEntry(file) {
    const item = document.createElement("li");
    item.dataset.newFile = "";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "file file-changed";
    const name = document.createElement("span");
    name.className = "file-name";
    name.textContent = file.path || "new file";
    button.append(name);
    if (file === this.current) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => this.show(file));
    item.append(button);
    return item;
  }
}

export function setUpWorkbench() {
  const form = document.querySelector("form[data-workbench]");
  if (form) new Workbench(form).start();
}
