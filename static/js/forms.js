// Forms: messages at fields, environment rows, file drop, starters, a failed import's line, the typed confirmation, the
// event's JSON.

import { editorOf, focusField } from "./editor.js";

/** Marks the fields that have a message, opens what hides them and moves to the first. */
function showFieldErrors() {
  let first;
  for (const message of document.querySelectorAll(".field-error")) {
    const name = message.id.replace(/^error-/, "");
    const input =
      name === "code"
        ? document.querySelector("#code-from-file:checked")
          ? document.getElementById("code-file")
          : document.getElementById("code-editor")
        : name === "env"
          ? document.querySelector("[name=env_name]")
          : document.getElementById(name);
    if (!input) continue;
    const wrong = message.textContent.trim() !== "";
    if (wrong) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
    if (wrong && !first) first = input;
  }
  if (!first) return;
  first.closest("details")?.setAttribute("open", "");
  focusField(first);
}

function setUpFieldErrors() {
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.xhr?.status !== 422 || !event.target.matches?.("form")) return;
    showFieldErrors();
    const problem = document.getElementById("problem");
    if (problem) problem.scrollIntoView({ block: "nearest" });
  });
  // A message has done its work once its field is changed.
  document.addEventListener("input", (event) => {
    if (event.target.getAttribute("aria-invalid") !== "true" || event.target.dataset.json !== undefined) return;
    event.target.removeAttribute("aria-invalid");
    const field = event.target.closest(".field");
    const message = field?.querySelector(":scope > .field-error");
    if (message) message.textContent = "";
  });
}

function setUpRows() {
  document.addEventListener("click", (event) => {
    const add = event.target.closest("[data-add-row]");
    if (add) {
      const row = document.getElementById(add.dataset.addRow).content.cloneNode(true);
      const rows = document.getElementById(add.dataset.rows);
      rows.append(row);
      rows.dispatchEvent(new Event("rows:changed", { bubbles: true }));
      rows.lastElementChild.querySelector("input").focus();
    }
    const remove = event.target.closest("[data-remove-row]");
    if (remove) {
      const row = remove.parentElement;
      const next = row.nextElementSibling ?? row.previousElementSibling;
      const rows = row.parentElement;
      row.remove();
      rows.dispatchEvent(new Event("rows:changed", { bubbles: true }));
      (next?.querySelector("input") ?? document.querySelector("[data-add-row]"))?.focus();
    }
  });
}

function setUpDrop() {
  for (const zone of document.querySelectorAll("[data-drop]")) {
    const form = zone.closest("form");
    const input = zone.querySelector("input[type=file]");
    const choose = () => {
      document.getElementById("code-from-file").checked = true;
    };
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
    // The whole form takes a file, so that nobody has to find the zone first.
    form.addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      choose();
      zone.classList.add("over");
    });
    form.addEventListener("dragleave", (event) => {
      if (!form.contains(event.relatedTarget)) zone.classList.remove("over");
    });
    form.addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      zone.classList.remove("over");
      if (event.dataTransfer.files.length > 0) {
        input.files = event.dataTransfer.files;
        input.dispatchEvent(new Event("change", { bubbles: true }));
      }
    });
  }
}

/** Another runtime brings the same starter in its language along, unless something else was written. */
function setUpStarters() {
  const form = document.querySelector("form[data-new]");
  if (!form) return;
  const runtime = document.getElementById("runtime");
  const area = document.getElementById("code-editor");
  runtime.addEventListener("change", () => {
    const chosen = document.querySelector(".starter[aria-current]");
    const other =
      chosen &&
      document.querySelector(
        `.starter[data-runtime="${runtime.value}"][data-label="${CSS.escape(chosen.dataset.label)}"]`,
      );
    if (other && area.value === area.defaultValue) {
      // Nothing is lost but what the starter itself had filled in.
      location.assign(other.href);
      return;
    }
    const handler = document.getElementById("handler");
    const names = { native: "bootstrap" };
    const isDefault = ["", "main.handler", "bootstrap"].includes(handler.value.trim());
    if (isDefault) handler.value = names[runtime.value] ?? "main.handler";
    // A program is not written here.
    if (runtime.value === "native") document.getElementById("code-from-file").checked = true;
    else editorOf(area)?.rename(runtime.value === "node" ? "main.mjs" : "main.py");
  });
}

/** The line at which an import failed, in an editor of one file. */
function setUpProblemLines() {
  const show = () => {
    const problem = document.getElementById("problem");
    const area = document.querySelector("form[data-new] #code-editor");
    if (!area || !problem?.dataset.line || document.getElementById("code-from-file").checked) return;
    if (!/^main\.(py|js|mjs)$/.test(problem.dataset.path)) return;
    editorOf(area)?.mark(Number(problem.dataset.line), problem.dataset.message);
    editorOf(area)?.focus();
    // After the editor has scrolled to its line, which it does when it is drawn.
    requestAnimationFrame(() => requestAnimationFrame(() => problem.scrollIntoView({ block: "start" })));
  };
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.target.id === "form-outcome" || event.target.querySelector?.("#problem")) show();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("form[data-new] [data-go-to-line]")) return;
    event.preventDefault();
    show();
  });
}

function setUpConfirmation() {
  const input = document.querySelector("[data-typed]");
  if (!input) return;
  const button = document.getElementById(input.dataset.allows);
  const check = () => {
    button.disabled = input.value.trim() !== input.dataset.typed;
  };
  input.addEventListener("input", check);
  check();
}

/** Why the text is not JSON, or nothing. */
function jsonError(text) {
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return text.trim() === "" ? "Enter JSON, or null for an empty event." : `Not JSON: ${error.message}`;
  }
}

function setUpEvent() {
  const area = document.querySelector("textarea[data-json]");
  if (!area) return;
  const key = area.dataset.remember;
  const remembered = sessionStorage.getItem(key);
  if (remembered !== null && area.dataset.explicit === undefined) {
    area.value = remembered;
    // It may be none of those that can be chosen.
    const pick = document.getElementById("pick");
    if (pick && remembered !== area.defaultValue) pick.value = "";
  }
  const message = document.getElementById(`error-${area.id}`);
  const check = () => {
    const error = jsonError(area.value);
    message.textContent = error;
    if (error) area.setAttribute("aria-invalid", "true");
    else area.removeAttribute("aria-invalid");
    return error === "";
  };
  area.addEventListener("change", check);
  area.addEventListener("input", () => {
    sessionStorage.setItem(key, area.value);
    if (area.hasAttribute("aria-invalid")) check();
  });
  area.form.addEventListener(
    "htmx:configRequest",
    (event) => {
      if (event.target !== area.form || check()) return;
      event.preventDefault();
      focusField(area);
    },
    true,
  );
}

/**
 * Buttons of a form that lead elsewhere do so by `formaction` where no script runs. Here htmx sends them by `hx-post`, and
 * must not see the former: it would send the whole form there whenever such a button had the focus last.
 */
function setUpFormActions() {
  const strip = (root) => {
    for (const button of root.querySelectorAll("[formaction][hx-post]")) button.removeAttribute("formaction");
  };
  strip(document);
  document.addEventListener("htmx:afterSwap", () => strip(document));
}

export function setUpForms() {
  setUpFormActions();
  setUpFieldErrors();
  setUpRows();
  setUpDrop();
  setUpStarters();
  setUpProblemLines();
  setUpConfirmation();
  setUpEvent();
}
