// Shows a log-in dialog over the page when the session has ended, so that input on the page is kept.

import { toast } from "./toast.js";

/** The dialog's parts, when it is shown for the first time. */
let parts;
/** The answer to the question that is open. */
let open;

function field(id, label, type, autocomplete) {
  const box = document.createElement("div");
  box.className = "field";
  const words = document.createElement("label");
  words.htmlFor = id;
  words.textContent = label;
  const input = document.createElement("input");
  Object.assign(input, { id, type, autocomplete, required: true, spellcheck: false });
  input.autocapitalize = "off";
  box.append(words, input);
  return { box, input };
}

function build() {
  const dialog = document.createElement("dialog");
  dialog.className = "dialog";
  dialog.id = "session-dialog";
  dialog.setAttribute("aria-labelledby", "session-title");
  dialog.setAttribute("aria-describedby", "session-text");
  const form = document.createElement("form");
  form.className = "stack";
  form.noValidate = true;
  const title = document.createElement("h2");
  title.id = "session-title";
  const text = document.createElement("p");
  text.id = "session-text";
  const name = field("session-name", "Name", "text", "username");
  const secret = field("session-secret", "Password", "password", "current-password");
  const message = document.createElement("p");
  message.className = "field-error";
  message.id = "session-error";
  message.setAttribute("role", "alert");
  secret.input.setAttribute("aria-describedby", message.id);
  secret.box.append(message);
  const actions = document.createElement("div");
  actions.className = "actions";
  const submit = document.createElement("button");
  submit.className = "button primary";
  submit.id = "session-submit";
  const cancel = document.createElement("button");
  cancel.type = "button";
  cancel.className = "button";
  cancel.textContent = "Not now";
  cancel.addEventListener("click", () => dialog.close());
  actions.append(submit, cancel);
  form.append(title, text, name.box, secret.box, actions);
  dialog.append(form);
  document.body.append(dialog);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  dialog.addEventListener("close", () => {
    const { resolve, before, done } = open;
    open = undefined;
    secret.input.value = "";
    before?.focus?.();
    resolve(done);
  });
  return { dialog, title, text, name, secret, message, submit };
}

const byToken = () => document.body.dataset.user === "" || document.body.dataset.by === "token";

async function send() {
  const { dialog, name, secret, message, submit } = parts;
  const body = new URLSearchParams(
    byToken() ? { token: secret.input.value } : { name: name.input.value, password: secret.input.value },
  );
  message.textContent = "";
  submit.disabled = true;
  try {
    const answer = await fetch(open.address, { method: "POST", headers: { "hx-request": "true" }, body });
    const said = await answer.json();
    if (answer.ok) {
      renew(said.csrf);
      open.done = true;
      dialog.close();
      return;
    }
    message.textContent = said.title ?? "The request was refused.";
  } catch {
    message.textContent = "The server cannot be reached. Try again in a moment.";
  } finally {
    submit.disabled = false;
  }
  secret.input.select();
  secret.input.focus();
}

/** The page goes on with the new session's token. */
function renew(csrf) {
  for (const input of document.querySelectorAll("input[name=csrf]")) input.value = csrf;
  const headers = JSON.parse(document.body.getAttribute("hx-headers") ?? "{}");
  document.body.setAttribute("hx-headers", JSON.stringify({ ...headers, "x-csrf-token": csrf }));
  document.dispatchEvent(new CustomEvent("logged-in"));
}

/**
 * Asks for the password over the page; resolves to whether it was right. `address` takes the form, answers 200 with
 * `{"csrf": …}` or an error with `{"title": …}`.
 */
export function logIn({
  title = "Log in again",
  text = "Your session has ended. Your input on this page is kept.",
  action = "Log in",
  address = "/login",
} = {}) {
  parts ??= build();
  if (open) return open.promise;
  const { dialog, name, secret } = parts;
  parts.title.textContent = title;
  parts.text.textContent = text;
  parts.submit.textContent = action;
  parts.message.textContent = "";
  name.box.hidden = byToken();
  name.input.value = document.body.dataset.user ?? "";
  secret.box.querySelector("label").textContent = byToken() ? "API token" : "Password";
  secret.input.autocomplete = byToken() ? "off" : "current-password";
  open = { done: false, before: document.activeElement, address };
  open.promise = new Promise((resolve) => {
    open.resolve = resolve;
  });
  const { promise } = open;
  dialog.showModal();
  (name.box.hidden || name.input.value ? secret : name).input.focus();
  return promise;
}

/** As `fetch`; of a session that has ended it asks, and then once more. Nothing when there is no connection. */
export async function fetchHere(address) {
  const ask = () => fetch(address, { headers: { "hx-request": "true" } }).catch(() => undefined);
  const answer = await ask();
  return answer?.status === 401 && (await logIn()) ? ask() : answer;
}

export function setUpSession() {
  document.addEventListener("htmx:responseError", async (event) => {
    if (event.detail.xhr.status !== 401) return;
    if (await logIn()) toast("You are logged in again", "Try that again.", "", "note");
  });
}
