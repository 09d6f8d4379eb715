// The settings page: the curl command for exactly what is changed in the form.

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** The network setting as the API takes it, if the form changes it. */
function network(form) {
  const [mode, allow, dryRun] = ["network", "network_allow", "network_dry_run"].map((name) => form.elements[name]);
  const isChosen = !mode.selectedOptions[0]?.defaultSelected;
  if (mode.value !== "rules") return isChosen ? mode.value : undefined;
  if (!isChosen && allow.value === allow.defaultValue && dryRun.checked === dryRun.defaultChecked) return undefined;
  const entries = allow.value.split("\n").map((line) => line.trim());
  return { allow: entries.filter(Boolean), dry_run: dryRun.checked };
}

/** The limits at ports as the API takes them, if the form changes them. */
function portLimits(form) {
  const inputs = [...form.querySelectorAll("[name^=limit_]")];
  if (inputs.every((input) => input.value === input.defaultValue)) return undefined;
  const number = (name) => (form.elements[name].value === "" ? undefined : form.elements[name].valueAsNumber);
  const rate = (of) => {
    const perSecond = number(`limit_${of}_rate`);
    return perSecond === undefined ? undefined : { per_second: perSecond, burst: number(`limit_${of}_burst`) };
  };
  const limits = { per_source: rate("source"), total: rate("total") };
  return limits.per_source || limits.total ? limits : null;
}

/** A line of the ports as the API takes it, such as "udp 9003 batch 64 wait 2" or "mqtt broker plant topic a/#". */
function port(line) {
  const [protocol, number, ...options] = line.split(/\s+/);
  const of = { protocol: protocol.toLowerCase() };
  if (number === "broker") of.broker = options.shift();
  else of.port = Number(number);
  for (let at = 0; at < options.length; at += 1) {
    if (options[at] === "topic") {
      at += 1;
      of.topics = [...(of.topics ?? []), { filter: options[at] }];
    } else if (options[at] === "response" && of.topics) {
      at += 1;
      of.topics.at(-1).response_topic = options[at];
    } else if (options[at] === "batch" || options[at] === "wait") {
      const name = options[at] === "batch" ? "max" : "wait_ms";
      at += 1;
      of.batch = { ...of.batch, [name]: Number(options[at]) };
    } else of.mode = options[at];
  }
  return of;
}

/** The ports as the API takes them, if the form changes them. */
function triggers(form) {
  const { value, defaultValue } = form.elements.triggers;
  const lines = (text) =>
    text
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
  const [typed, before] = [lines(value), lines(defaultValue)];
  return typed.join("\n") === before.join("\n") ? undefined : typed.map(port);
}

/** The rules for other origins as the API takes them, if the form changes them. */
function cors(form) {
  const inputs = [...form.querySelectorAll("[name^=cors_]")];
  const isChanged = (input) => input.checked !== input.defaultChecked || input.value !== input.defaultValue;
  if (!inputs.some(isChanged)) return undefined;
  if (inputs.every((input) => (input.type === "checkbox" ? !input.checked : input.value.trim() === ""))) return null;
  const list = (name) => form.elements[`cors_${name}`].value.split(/[,\s]+/).filter(Boolean);
  return {
    allow_origins: list("origins"),
    allow_methods: list("methods"),
    allow_headers: list("headers"),
    expose_headers: list("exposed"),
    allow_credentials: form.elements.cors_credentials.checked,
    max_age_s: form.elements.cors_max_age_s.valueAsNumber || 0,
  };
}

/** The changed settings as the API takes them. Values of variables are secrets: of them only the place is shown. */
function changes(form) {
  const body = {};
  for (const field of form.querySelectorAll("input[name], select[name]")) {
    const { name, type } = field;
    if (type === "hidden" || name.startsWith("env_") || /^(network|limit_|cors_)/.test(name)) continue;
    if (type === "checkbox") {
      if (field.checked !== field.defaultChecked) body[name] = field.checked;
    } else if (field.tagName === "SELECT") {
      if (!field.selectedOptions[0]?.defaultSelected) body[name] = field.value;
    } else if (field.value !== field.defaultValue) {
      body[name] = type === "number" ? field.valueAsNumber : field.value;
    }
  }
  const reachable = network(form);
  if (reachable !== undefined) body.network = reachable;
  const limits = portLimits(form);
  if (limits !== undefined) body.port_limits = limits;
  const ports = triggers(form);
  if (ports !== undefined) body.triggers = ports;
  const origins = cors(form);
  if (origins !== undefined) body.cors = origins;
  const env = {};
  for (const row of form.querySelectorAll(".env-row")) {
    const name = row.querySelector("[name=env_name]").value.trim();
    if (name) env[name] = "…";
  }
  for (const item of form.querySelectorAll("#env-list li")) {
    const name = item.querySelector("[name=env_known]").value;
    if (item.querySelector("[name=env_replace]").value) env[name] = "…";
    else if (item.querySelector("[name=env_remove]").checked) env[name] = null;
  }
  if (Object.keys(env).length > 0) body.env = env;
  return body;
}

export function setUpSettings() {
  const form = document.querySelector("form[data-settings]");
  const command = document.getElementById("command-1");
  if (!form || !command) return;
  const example = command.textContent;
  const start = example.slice(0, example.lastIndexOf(" -d ") + 4);
  const write = () => {
    const body = changes(form);
    command.textContent = Object.keys(body).length > 0 ? start + quoted(JSON.stringify(body)) : example;
  };
  for (const type of ["input", "change", "rows:changed"]) form.addEventListener(type, write);
}
