// The dialog in which a change of the code is looked over before it is deployed, and the problem that a deploy met.

import { editorOf } from "./editor.js";

/** The review of the code page's `form`. `workbench` has its files. */
export class Review {
  constructor(workbench, form, area) {
    this.workbench = workbench;
    this.form = form;
    this.area = area;
  }

  start() {
    const dialog = document.getElementById("review");
    const body = document.getElementById("review-body");
    const button = document.getElementById("review-button");
    document.addEventListener("keydown", (event) => {
      if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey) || event.defaultPrevented) return;
      event.preventDefault();
      if (!dialog.open) button.click();
    });
    document.addEventListener("htmx:beforeSwap", (event) => {
      if (event.detail.target !== body || event.detail.xhr.status !== 422) return;
      // Refused: the message belongs to the form.
      event.detail.target = document.getElementById("form-outcome");
      event.detail.swapOverride = "outerHTML";
    });
    // Settled and not only swapped: until then the button is disabled and cannot have the focus.
    body.addEventListener("htmx:afterSettle", () => {
      if (dialog.open) return;
      document.getElementById("form-outcome").replaceChildren();
      editorOf(this.area)?.unmark();
      dialog.showModal();
      dialog.querySelector("#deploy-button").focus();
    });
    this.form.addEventListener("submit", () => dialog.close());
    document.addEventListener("htmx:afterSettle", (event) => {
      if (event.target.id === "form-outcome") this.focusProblem();
      this.showProblem();
    });
    document.addEventListener("click", (event) => {
      if (!event.target.closest?.("[data-go-to-line]")) return;
      event.preventDefault();
      this.shown = undefined;
      this.showProblem();
    });
  }

  /** Moves the focus to the message, which stands below the sticky head. */
  focusProblem() {
    const problem = document.getElementById("problem");
    if (!problem) return;
    problem.tabIndex = -1;
    problem.scrollIntoView({ block: "start" });
    problem.focus({ preventScroll: true });
  }

  /** Opens the line at which the import failed. */
  async showProblem() {
    const problem = document.getElementById("problem");
    if (!problem?.dataset.line || this.shown === problem) return;
    this.shown = problem;
    const { path, line, message } = problem.dataset;
    const uploads = document.getElementById("code-from-file")?.checked;
    // An upload's lines are not those of the version in the editor.
    if (uploads) return;
    if (!(await this.workbench.showText(path))) return;
    const editor = editorOf(this.area);
    editor?.mark(Number(line), message);
    editor?.focus();
    // After the editor has scrolled to its line, which it does when it is drawn: the message comes first.
    requestAnimationFrame(() => requestAnimationFrame(() => problem.scrollIntoView({ block: "start" })));
  }
}
