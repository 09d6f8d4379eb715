// Toasts: errors of htmx requests with the request id, and short notes.

import { copyText } from "./copy.js";

const SHOWN_MS = 12_000;
const MOST_TOASTS = 4;

/** Shows a message. `id` is the request's, to be found in the server's log; `kind` is `error` or `note`. */
export function toast(title, detail = "", id = "", kind = "error") {
  const region = document.getElementById(kind === "error" ? "toasts" : "notes");
  if (!region) return;
  // The same message over and over, as when the server is away, is shown once.
  for (const shown of region.children) {
    if (shown.dataset.title === title) shown.remove();
  }
  while (region.children.length >= MOST_TOASTS) region.firstElementChild.remove();

  const box = document.createElement("div");
  box.className = `toast toast-${kind}`;
  box.dataset.title = title;
  box.append(line("toast-title", title), closeButton(box));
  if (detail) box.append(line("toast-detail", detail));
  if (id) box.append(idLine(id));
  region.append(box);

  let timer = setTimeout(() => box.remove(), SHOWN_MS);
  const hold = () => clearTimeout(timer);
  const release = () => {
    hold();
    timer = setTimeout(() => box.remove(), SHOWN_MS);
  };
  box.addEventListener("mouseenter", hold);
  box.addEventListener("focusin", hold);
  box.addEventListener("mouseleave", release);
  box.addEventListener("focusout", release);
}

function line(name, text) {
  const paragraph = document.createElement("p");
  paragraph.className = name;
  paragraph.textContent = text;
  return paragraph;
}

/** The request's id with a button that copies it. */
function idLine(id) {
  const paragraph = line("toast-id", "Request ");
  const code = document.createElement("code");
  code.textContent = id;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button quiet";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy the request's id");
  button.addEventListener("click", () => copyText(code, button));
  paragraph.append(code, " ", button);
  return paragraph;
}

function closeButton(box) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button quiet";
  button.textContent = "Close";
  button.addEventListener("click", () => box.remove());
  return button;
}

/** The title, detail and id of an error answer: a problem document, or whatever came instead. */
function problemOf(request) {
  const id = request.getResponseHeader("x-request-id") ?? "";
  if ((request.getResponseHeader("content-type") ?? "").includes("json")) {
    try {
      const problem = JSON.parse(request.responseText);
      return { title: problem.title, detail: problem.detail, id: problem.request_id ?? id };
    } catch {
      // Not a document after all.
    }
  }
  return { title: `The server responded with status ${request.status}`, detail: "", id };
}

export function setUpToasts() {
  document.addEventListener("htmx:responseError", (event) => {
    // The session has ended: session.js asks.
    if (event.detail.xhr.status === 401) return;
    const { title, detail, id } = problemOf(event.detail.xhr);
    toast(title, detail, id);
  });
  document.addEventListener("htmx:sendError", () => {
    toast("The server cannot be reached", "Try again in a moment.");
  });
  document.addEventListener("htmx:timeout", () => toast("The server did not respond in time"));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const box = document.activeElement?.closest(".toast");
    box?.remove();
  });
}
