// The test panel: events to start from, and the curl command for exactly what is in the form.

import { fetchHere } from "./session.js";
import { toast } from "./toast.js";

/** One word of a POSIX shell. */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function set(area, text) {
  area.value = text;
  area.dispatchEvent(new Event("input", { bubbles: true }));
  area.dispatchEvent(new Event("change", { bubbles: true }));
}

/** The chooser is swapped when an event was saved: everything is found anew. */
function setUpPicker(area) {
  let filling = false;
  document.addEventListener("change", async (event) => {
    const select = event.target;
    if (!select.matches?.("#pick")) return;
    const remove = document.getElementById("delete-event");
    if (remove) remove.hidden = !select.value.startsWith("saved-");
    const name = document.getElementById("event-name");
    if (name) name.value = select.selectedOptions[0]?.dataset.name ?? "";
    if (select.value === "") return;
    const response = await fetchHere(`${select.dataset.pick}?${new URLSearchParams({ pick: select.value })}`);
    if (!response?.ok) {
      toast("Could not load the event", "", response?.headers.get("x-request-id") ?? "");
      return;
    }
    filling = true;
    set(area, await response.text());
    filling = false;
    document.getElementById("event-said").textContent = "";
  });
  // What is changed is no sample any more; a saved event stays chosen, to be saved again.
  area.addEventListener("input", () => {
    const select = document.getElementById("pick");
    if (!filling && select?.value.startsWith("sample-")) select.value = "";
  });
  document.addEventListener("htmx:afterSettle", () => {
    const name = document.getElementById("event-name");
    if (name?.getAttribute("aria-invalid") === "true") name.focus();
  });
  // What is typed replaces the name that was chosen, and is not added to it.
  document.addEventListener("focusin", (event) => {
    if (event.target.id === "event-name") event.target.select();
  });
  // Enter in the name saves and does not invoke.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target.id !== "event-name") return;
    event.preventDefault();
    document.getElementById("save-event").click();
  });
}

const utf8 = new TextEncoder();
/** What an address holds as it is. Of what may stand in one, curl takes brackets for patterns. */
const PLAIN = /^[!$%&'()*+,\-./0-9:;=?@A-Z_a-z~]$/;

/** Encodes what an address cannot hold, as the server does with what is typed into the form. */
const encoded = (text) =>
  Array.from(utf8.encode(text), (byte) => {
    const character = String.fromCharCode(byte);
    return PLAIN.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }).join("");

/** The command that makes the call which the form would make. */
function httpCommand(form) {
  const field = (name) => form.elements.namedItem(name).value;
  const method = field("method");
  const path = field("path").trim().replace(/^\/*/, "/");
  const query = field("query").trim().replace(/^\?/, "");
  const address = form.dataset.url + encoded((path === "/" ? "" : path) + (query ? `?${query}` : ""));
  const words = ["curl"];
  if (method === "HEAD") words.push("-I");
  else if (method !== "GET" || field("body")) words.push("-X", method);
  words.push(quoted(address));
  if (form.dataset.public === undefined) words.push('-H "Authorization: Bearer $HEARTH_TOKEN"');
  for (const line of field("headers").split("\n")) {
    if (line.trim()) words.push("-H", quoted(line.trim()));
  }
  if (field("body")) words.push("--data-raw", quoted(field("body")));
  return words.join(" ");
}

function setUpCommand(area) {
  const command = document.getElementById("curl-command");
  const form = document.getElementById("call-form");
  const byUrl = document.getElementById("mode-http");
  const write = () => {
    command.textContent = byUrl.checked ? httpCommand(form) : command.dataset.curl + quoted(area.value);
  };
  for (const source of [area, form, byUrl, document.getElementById("mode-event")]) {
    source.addEventListener("input", write);
    source.addEventListener("change", write);
  }
  write();
}

function setUpKeys() {
  document.addEventListener("keydown", (event) => {
    const area = event.target;
    if (
      event.key !== "Enter" ||
      !(event.ctrlKey || event.metaKey) ||
      !area.matches?.("textarea[data-submit], #call-form input")
    )
      return;
    event.preventDefault();
    area.form.requestSubmit();
  });
}

export function setUpPanel() {
  const area = document.getElementById("event");
  if (!area?.form) return;
  setUpPicker(area);
  setUpCommand(area);
  setUpKeys();
}
