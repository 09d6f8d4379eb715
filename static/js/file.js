// A file of the code page, and what was done to it.

/**
 * A file of the version, or a new one. `origin` is its path in the version (none: new), `path` its path now (none:
 * deleted), `kind` what can be done with it, `before` its text in the version, `text` its text now, `state` the
 * editor's.
 */
export class CodeFile {
  constructor({ origin, path, kind, size, text }) {
    // Of a file that the version lacks, the server settles what really changed.
    const before = origin === undefined ? undefined : text;
    Object.assign(this, { origin, path, kind, size, before, text, state: undefined });
  }

  get isNew() {
    return this.origin === undefined;
  }

  get isDeleted() {
    return this.path === undefined;
  }

  get isChanged() {
    // The empty one that a page without any file begins with is nothing yet.
    if (this.isNew) return !this.isDeleted && (this.path !== "" || this.text !== "");
    return this.path !== this.origin || (this.kind === "text" && this.text !== this.before);
  }

  /** As the server takes it. */
  get edit() {
    const edit = {};
    if (!this.isNew) edit.from = this.origin;
    if (!this.isDeleted) {
      edit.to = this.path.trim();
      if (this.kind === "text" && (this.isNew || this.text !== this.before)) edit.text = this.text;
    }
    return edit;
  }

  /** What a draft keeps of it. */
  get kept() {
    const { origin, path, kind, size, text } = this;
    return { origin, path, kind, size, text };
  }
}

/** The last part of a path. */
export const basename = (path) => path.slice(path.lastIndexOf("/") + 1);
