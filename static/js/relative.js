// Keeps relative times (`<time>3 min ago</time>`) up to date.

const TICK_MS = 5_000;
/** Times that are not in words are left alone. */
const IN_WORDS = /^(just now|\d+ (s|min|h|d) ago)$/;

/** As `relative` in `web/src/format.rs` says it. */
export function relative(then, now) {
  const seconds = Math.floor((now - then) / 1000);
  if (seconds < 3) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

function refresh() {
  if (document.hidden) return;
  const now = Date.now();
  for (const time of document.querySelectorAll("time[datetime]")) {
    if (!IN_WORDS.test(time.textContent.trim())) continue;
    const text = relative(Date.parse(time.dateTime), now);
    if (time.textContent !== text) time.textContent = text;
  }
}

export function setUpRelativeTimes() {
  setInterval(refresh, TICK_MS);
  document.addEventListener("visibilitychange", refresh);
  document.addEventListener("fresh", refresh);
}
