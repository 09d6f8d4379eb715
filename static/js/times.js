// Times of day: in UTC, as the server writes them, or in the browser's own zone, as the user menu says. Logs get a heading
// for each day.

const KEY = "hearth-times";
const CLOCK = /^\d\d:\d\d:\d\d\.\d{3}$/;
const ABSOLUTE = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC\S*$/;

let local = false;
const two = (number) => String(number).padStart(2, "0");

/** The date shifted so that its UTC fields are those of the chosen zone. */
function shifted(time) {
  const date = new Date(time);
  return local ? new Date(date.getTime() - date.getTimezoneOffset() * 60_000) : date;
}

function offset(time) {
  const minutes = local ? -new Date(time).getTimezoneOffset() : 0;
  if (minutes === 0) return "UTC";
  const hours = Math.floor(Math.abs(minutes) / 60);
  const rest = Math.abs(minutes) % 60;
  return `UTC${minutes < 0 ? "-" : "+"}${hours}${rest ? `:${two(rest)}` : ""}`;
}

const fields = (time) => shifted(time).toISOString();
/** `2025-01-31` */
export const day = (time) => fields(time).slice(0, 10);
/** `10:11:12.345` */
export const clock = (time) => fields(time).slice(11, 23);
/** `2025-01-31 10:11:12.345 UTC` */
export const absolute = (time) => `${fields(time).slice(0, 23).replace("T", " ")} ${offset(time)}`;

/** A heading before the first line of each day. */
export function putDays(list) {
  for (const heading of list.querySelectorAll(".log-day")) heading.remove();
  let before;
  for (const time of list.querySelectorAll("li > time")) {
    const now = day(time.dateTime);
    if (now === before) continue;
    before = now;
    const heading = document.createElement("li");
    heading.className = "log-day";
    heading.textContent = now;
    time.parentElement.before(heading);
  }
}

function write() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = time.dateTime;
    if (ABSOLUTE.test(time.title)) time.title = absolute(at);
    const text = time.textContent;
    if (CLOCK.test(text)) time.textContent = clock(at);
    else if (ABSOLUTE.test(text)) time.textContent = absolute(at);
  }
  for (const list of document.querySelectorAll("ol.logs")) putDays(list);
  const zone = local ? Intl.DateTimeFormat().resolvedOptions().timeZone : "UTC";
  for (const name of document.querySelectorAll("[data-zone]")) name.textContent = zone;
}

function choose(value) {
  local = value === "local";
  for (const button of document.querySelectorAll("[data-times] button")) {
    button.setAttribute("aria-pressed", String((button.value === "local") === local));
  }
  write();
}

export function setUpTimes() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-times] button");
    if (!button) return;
    localStorage.setItem(KEY, button.value);
    choose(button.value);
  });
  // Another tab has chosen.
  addEventListener("storage", (event) => {
    if (event.key === KEY) choose(event.newValue);
  });
  for (const type of ["htmx:afterSwap", "fresh"]) {
    document.addEventListener(type, () => {
      if (local) write();
    });
  }
  choose(localStorage.getItem(KEY));
}
