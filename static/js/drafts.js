// Drafts: undeployed code, kept in the tab's storage by user, function and base version.

const PREFIX = "draft:";

const user = () => document.body.dataset.user ?? "";
const own = () => `${PREFIX}${JSON.stringify(user())}:`;

/** Forgets what the tab remembers; drafts only when the user has logged out. */
export function clearRemembered(drafts) {
  for (const key of Object.keys(sessionStorage)) {
    if (drafts || !key.startsWith(PREFIX)) sessionStorage.removeItem(key);
  }
}

/** What somebody else wrote in this tab is not shown to this user. */
export function forgetDraftsOfOthers() {
  if (document.body.dataset.user === undefined) return;
  for (const key of Object.keys(sessionStorage)) {
    if (key.startsWith(PREFIX) && !key.startsWith(own())) sessionStorage.removeItem(key);
  }
}

/** The draft of a function's version. */
export class Draft {
  constructor(name, version) {
    this.key = `${own()}${name}:${version}`;
  }

  /** `{ at, files }`, or nothing. */
  read() {
    try {
      return JSON.parse(sessionStorage.getItem(this.key)) ?? undefined;
    } catch {
      return undefined;
    }
  }

  /** Keeps these files; without any, there is no draft. */
  write(files) {
    if (files.length === 0) {
      sessionStorage.removeItem(this.key);
      return;
    }
    try {
      sessionStorage.setItem(this.key, JSON.stringify({ at: Date.now(), files }));
    } catch {
      // More than the browser keeps: an older state would be worse than none.
      sessionStorage.removeItem(this.key);
    }
  }

  forget() {
    sessionStorage.removeItem(this.key);
  }
}

/** `14:02`, with the date when it is another day. */
export function clock(at) {
  const then = new Date(at);
  const time = then.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const today = then.toDateString() === new Date().toDateString();
  return today ? time : `${then.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}, ${time}`;
}
