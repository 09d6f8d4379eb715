// The console's behaviour beyond htmx. Each module finds its elements by a data attribute.

import { setUpCopying } from "./copy.js";
import { setUpEditors } from "./editor.js";
import { setUpForms } from "./forms.js";
import { setUpMenus } from "./menu.js";
import { setUpPolling } from "./poll.js";
import { setUpTail } from "./tail.js";
import { setUpTheme } from "./theme.js";
import { setUpToasts } from "./toast.js";

setUpToasts();
setUpMenus();
setUpTheme();
setUpForms();
setUpEditors();
setUpCopying();
setUpPolling();
setUpTail();

// Remembered events may hold what the next user should not see.
if (document.getElementById("login-token")) sessionStorage.clear();

// A notice belongs to the change that was just made: a reload should not repeat it.
const address = new URL(location.href);
if (address.searchParams.has("notice") || address.searchParams.has("bye")) {
  address.searchParams.delete("notice");
  address.searchParams.delete("bye");
  history.replaceState(history.state, "", address);
}
