// Environment variables in a form: values are hidden until shown, and a whole .env file can be pasted.

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const ESCAPES = { n: "\n", r: "\r", t: "\t" };

/** The value at the beginning of `text`, and what follows it; or what is wrong with it. */
function value(text) {
  const quote = text[0];
  if (quote !== '"' && quote !== "'") {
    // A comment begins after a space: "#" may be part of a value.
    return { value: text.replace(/\s+#.*$/, "").trim(), rest: "" };
  }
  let out = "";
  for (let at = 1; at < text.length; at += 1) {
    const character = text[at];
    if (character === quote) return { value: out, rest: text.slice(at + 1) };
    if (character === "\\" && quote === '"' && at + 1 < text.length) {
      at += 1;
      out += ESCAPES[text[at]] ?? text[at];
    } else out += character;
  }
  return { wrong: `missing closing ${quote}` };
}

/** The variable that a line sets; nothing of an empty line; or what is wrong with it. */
function variable(whole) {
  const line = whole.trim().replace(/^export\s+/, "");
  if (line === "" || line.startsWith("#")) return {};
  const equals = line.indexOf("=");
  if (equals < 0) return { wrong: "expected NAME=value" };
  const name = line.slice(0, equals).trim();
  if (!NAME.test(name)) return { wrong: `"${name}" must be letters, digits and underscores, no digit first` };
  const read = value(line.slice(equals + 1).trim());
  if (read.wrong) return { wrong: read.wrong };
  if (!/^\s*(#.*)?$/.test(read.rest)) return { wrong: "text after the closing quote" };
  if (/[\r\n]/.test(read.value)) return { wrong: "the value has a line break; set it with the API instead" };
  return { name, value: read.value };
}

/** What a .env file sets, in order, and what is wrong with it, by line. */
export function parseEnv(text) {
  const variables = new Map();
  const errors = [];
  text.split(/\r?\n/).forEach((line, index) => {
    const found = variable(line);
    if (found.wrong) errors.push(`Line ${index + 1}: ${found.wrong}.`);
    else if (found.name) variables.set(found.name, found.value);
  });
  return { variables, errors };
}

/** Puts a variable where it belongs: at the one of this name, into an empty row, into a new one. */
function put(form, name, text) {
  const known = Array.from(form.querySelectorAll("#env-list li")).find(
    (item) => item.querySelector("[name=env_known]").value === name,
  );
  if (known) {
    known.querySelector("[name=env_replace]").value = text;
    known.querySelector("[name=env_remove]").checked = false;
    return;
  }
  const rows = Array.from(form.querySelectorAll(".env-row"));
  const nameOf = (row) => row.querySelector("[name=env_name]");
  let row =
    rows.find((one) => nameOf(one).value.trim() === name) ?? rows.find((one) => nameOf(one).value.trim() === "");
  if (!row) {
    document.getElementById("env-rows").append(document.getElementById("env-row").content.cloneNode(true));
    row = document.getElementById("env-rows").lastElementChild;
  }
  nameOf(row).value = name;
  row.querySelector("[name=env_value]").value = text;
}

function paste() {
  const area = document.getElementById("env-paste");
  const message = document.getElementById("env-paste-error");
  const { variables, errors } = parseEnv(area.value);
  message.textContent = errors.join(" ");
  // All or nothing: half a file would go unnoticed.
  if (errors.length > 0 || variables.size === 0) {
    if (errors.length === 0) message.textContent = "Nothing to add. Enter lines of NAME=value.";
    area.setAttribute("aria-invalid", "true");
    area.focus();
    return;
  }
  const form = area.closest("form");
  for (const [name, text] of variables) put(form, name, text);
  area.removeAttribute("aria-invalid");
  area.value = "";
  area.closest("details").open = false;
  const said = document.getElementById("env-paste-said");
  said.textContent = variables.size === 1 ? "Added 1 variable." : `Added ${variables.size} variables.`;
  document.getElementById("env-rows").dispatchEvent(new Event("rows:changed", { bubbles: true }));
}

export function setUpEnv() {
  document.addEventListener("click", (event) => {
    const reveal = event.target.closest?.("[data-reveal]");
    if (reveal) {
      const input = reveal.parentElement.querySelector("[data-secret]");
      const hidden = input.type === "password";
      input.type = hidden ? "text" : "password";
      reveal.textContent = hidden ? "Hide" : "Show";
      reveal.setAttribute("aria-pressed", String(hidden));
    }
    if (event.target.closest?.("#env-paste-add")) paste();
  });
}
