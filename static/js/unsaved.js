// Warns before leaving a page with unsaved changes in `data-unsaved` forms or other registered elements.

import { ask } from "./confirm.js";

/** Functions that tell whether something is unsaved. */
const sources = new Set();
let leaving = false;

/** Adds one. */
export function watchUnsaved(isUnsaved) {
  sources.add(isUnsaved);
}

const isUnsaved = () => !leaving && Array.from(sources).some((source) => source());

/** What the form would send, without what changes by itself. */
function content(form) {
  const fields = new FormData(form);
  fields.delete("csrf");
  return JSON.stringify(Array.from(fields, ([name, value]) => [name, value instanceof File ? value.name : value]));
}

export function setUpUnsaved() {
  for (const form of document.querySelectorAll("form[data-unsaved]")) {
    const saved = content(form);
    const note = form.querySelector(".unsaved-note");
    const differs = () => content(form) !== saved;
    watchUnsaved(differs);
    const tell = () => {
      if (note) note.hidden = !differs();
    };
    form.addEventListener("input", tell);
    form.addEventListener("change", tell);
    form.addEventListener("rows:changed", tell);
  }
  // A save that succeeded leads elsewhere.
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const { status } = event.detail.xhr;
    if (status >= 200 && status < 300 && event.detail.xhr.getResponseHeader("hx-redirect")) leaving = true;
  });
  window.addEventListener("beforeunload", (event) => {
    if (isUnsaved()) event.preventDefault();
  });
  // A link can be asked about in words; closing the tab cannot.
  document.addEventListener("click", async (event) => {
    const link = event.target.closest?.("a[href]");
    if (event.defaultPrevented || !link || link.target || link.hasAttribute("download")) return;
    if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (link.getAttribute("href").startsWith("#") || link.dataset.confirm || !isUnsaved()) return;
    event.preventDefault();
    const left = await ask({
      title: "Leave without saving?",
      text: "Your changes on this page are not saved.",
      action: "Leave",
      danger: true,
    });
    if (!left) return;
    leaving = true;
    location.assign(link.href);
  });
}
