// Forms: messages at fields, environment rows, file drop, starters, the typed confirmation, the event's JSON.

import { focusField } from "./editor.js";

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
      rows.lastElementChild.querySelector("input").focus();
    }
    const remove = event.target.closest("[data-remove-row]");
    if (remove) {
      const row = remove.parentElement;
      const next = row.nextElementSibling ?? row.previousElementSibling;
      row.remove();
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

/** Offers the starters of the chosen runtime. Another runtime brings its first one along. */
function setUpStarters() {
  const chooser = document.querySelector("[data-starters]");
  if (!chooser) return;
  const runtime = document.getElementById("runtime");
  const editor = document.getElementById(chooser.dataset.starters);
  const code = (id) => document.getElementById(id).content.textContent;
  const options = Array.from(chooser.options);
  chooser.closest("[data-needs-script]").hidden = false;
  let chosen = chooser.value;
  const offer = () => {
    for (const option of options) {
      option.hidden = option.disabled = option.dataset.runtime !== runtime.value;
    }
  };
  /** Whether the editor's text was replaced by the starter's. */
  const take = (id) => {
    const untouched = editor.value.trim() === "" || options.some((option) => code(option.value) === editor.value);
    if (!untouched && !confirm("Replace the code you have written?")) return false;
    chosen = chooser.value = id;
    editor.value = code(chosen);
    editor.dispatchEvent(new Event("input", { bubbles: true }));
    return true;
  };
  chooser.addEventListener("change", () => {
    if (!take(chooser.value)) chooser.value = chosen;
  });
  runtime.addEventListener("change", () => {
    offer();
    const first = options.find((option) => option.dataset.runtime === runtime.value);
    if (first) take(first.value);
  });
  offer();
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
    return text.trim() === "" ? "Enter JSON; null is the empty event." : `Not JSON: ${error.message}`;
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

export function setUpForms() {
  setUpFieldErrors();
  setUpRows();
  setUpDrop();
  setUpStarters();
  setUpConfirmation();
  setUpEvent();
}
