// A dialog that confirms irreversible actions.
//
// `data-confirm="QUESTION"` on a form, on a button that submits one, on an element with hx-post or hx-delete, or on a
// link. With it: `data-confirm-title`, `data-confirm-action` (the button's words), `data-confirm-danger`. A link with
// `data-method="post"` leads to a page that asks where scripts do not run; here it is sent at once after the answer.

import { toast } from "./toast.js";

const words = { title: "Are you sure?", action: "Continue" };

function build() {
  const dialog = document.createElement("dialog");
  dialog.className = "dialog";
  dialog.id = "confirm-dialog";
  dialog.setAttribute("aria-labelledby", "confirm-title");
  dialog.setAttribute("aria-describedby", "confirm-text");
  const title = document.createElement("h2");
  title.id = "confirm-title";
  const text = document.createElement("p");
  text.id = "confirm-text";
  const actions = document.createElement("form");
  actions.method = "dialog";
  actions.className = "actions";
  const yes = document.createElement("button");
  yes.id = "confirm-yes";
  yes.value = "yes";
  const no = document.createElement("button");
  no.id = "confirm-no";
  no.value = "no";
  no.className = "button";
  no.textContent = "Cancel";
  actions.append(yes, no);
  dialog.append(title, text, actions);
  document.body.append(dialog);
  return { dialog, title, text, yes, no };
}

let parts;

/** Asks; resolves to whether the answer was yes. The focus goes back to where it was. */
export function ask({ text, title = words.title, action = words.action, danger = false }) {
  parts ??= build();
  const { dialog, yes, no } = parts;
  const before = document.activeElement;
  parts.title.textContent = title;
  parts.text.textContent = text;
  yes.textContent = action;
  yes.className = danger ? "button danger" : "button primary";
  dialog.returnValue = "";
  dialog.showModal();
  // What destroys needs one more key than Enter.
  (danger ? no : yes).focus();
  return new Promise((resolve) => {
    dialog.addEventListener(
      "close",
      () => {
        before?.focus?.();
        resolve(dialog.returnValue === "yes");
      },
      { once: true },
    );
  });
}

/** The questions of an element, or nothing. */
function question(element) {
  const { confirm: text, confirmTitle: title, confirmAction: action, confirmDanger } = element?.dataset ?? {};
  return text ? { text, title, action, danger: confirmDanger !== undefined } : undefined;
}

/** Forms and buttons whose question was answered with yes, for the one event that follows. */
const answered = new WeakSet();

function setUpHtmx() {
  document.addEventListener("htmx:confirm", async (event) => {
    const { elt, triggeringEvent, issueRequest } = event.detail;
    const asks = question(triggeringEvent?.submitter) ?? question(elt);
    // A link was asked about before its request was made.
    if (!asks || elt.matches("a[data-method]")) return;
    event.preventDefault();
    if (await ask(asks)) issueRequest(true);
  });
}

function setUpForms() {
  document.addEventListener("submit", async (event) => {
    const { target: form, submitter } = event;
    // htmx asks by its own event.
    if (form.matches("[hx-post], [hx-delete], [hx-put], [hx-patch]")) return;
    const asks = question(submitter) ?? question(form);
    if (!asks || answered.delete(form)) return;
    event.preventDefault();
    if (!(await ask(asks))) return;
    answered.add(form);
    form.requestSubmit(submitter ?? undefined);
  });
}

function setUpLinks() {
  document.addEventListener("click", async (event) => {
    const link = event.target.closest?.("a[data-confirm]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || link.matches("[hx-post], [hx-delete]")) return;
    event.preventDefault();
    if (link.getAttribute("aria-busy") === "true" || !(await ask(question(link)))) return;
    if (link.dataset.method !== "post") {
      location.assign(link.href);
      return;
    }
    const label = link.innerHTML;
    link.setAttribute("aria-busy", "true");
    if (link.dataset.busy) link.textContent = link.dataset.busy;
    try {
      await window.htmx.ajax("POST", link.getAttribute("href"), { source: link, target: link, swap: "none" });
    } finally {
      link.innerHTML = label;
      link.removeAttribute("aria-busy");
    }
  });
}

/** What a link's request was refused with: there is no form to show it in. */
function setUpRefusals() {
  document.addEventListener("htmx:afterRequest", (event) => {
    const { elt, xhr } = event.detail;
    if (xhr?.status !== 422 || !elt.matches?.("a[data-method]")) return;
    let problem = {};
    try {
      problem = JSON.parse(xhr.responseText);
    } catch {
      // The status alone has to do.
    }
    toast(problem.title ?? "The request was refused", problem.detail, xhr.getResponseHeader("x-request-id") ?? "");
  });
}

export function setUpConfirming() {
  setUpRefusals();
  setUpHtmx();
  setUpForms();
  setUpLinks();
  document.addEventListener("click", (event) => {
    event.target.closest?.("[data-close-dialog]")?.closest("dialog")?.close();
  });
}
