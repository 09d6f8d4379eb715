// The console's behaviour beyond htmx. Each module finds its elements by a data attribute. The server puts these modules into
// one file (web/src/assets/bundle.rs).

import { setUpLatency } from "./charts/latency.js";
import { setUpPng } from "./charts/png.js";
import { setUpConfirming } from "./confirm.js";
import { setUpCopying } from "./copy.js";
import { clearRemembered, forgetDraftsOfOthers } from "./drafts.js";
import { setUpEditors } from "./editor.js";
import { setUpEnv } from "./env.js";
import { setUpFocus } from "./focus.js";
import { setUpForms } from "./forms.js";
import { setUpHolding } from "./hold.js";
import { setUpLive } from "./live.js";
import { setUpLogLines } from "./loglines.js";
import { setUpMenus } from "./menu.js";
import { setUpOnce } from "./once.js";
import { setUpPalette } from "./palette.js";
import { setUpPanel } from "./panel.js";
import { setUpPolling } from "./poll.js";
import { setUpProgress } from "./progress.js";
import { setUpRelativeTimes } from "./relative.js";
import { setUpRows } from "./rows.js";
import { setUpSession } from "./session.js";
import { setUpSettings } from "./settings.js";
import { setUpSparkline } from "./sparkline.js";
import { setUpTabs } from "./tabs.js";
import { setUpTail } from "./tail.js";
import { setUpTheme } from "./theme.js";
import { setUpTimes } from "./times.js";
import { setUpToasts } from "./toast.js";
import { setUpUnsaved } from "./unsaved.js";
import { setUpWorkbench } from "./workbench.js";

const address = new URL(location.href);

setUpToasts();
setUpHolding();
setUpSession();
setUpFocus();
setUpMenus();
setUpPalette();
setUpTheme();
setUpForms();
setUpPanel();
setUpEditors();
setUpCopying();
setUpPolling();
setUpRows();
setUpOnce();
setUpRelativeTimes();
setUpSparkline();
setUpConfirming();
setUpUnsaved();
setUpProgress();
setUpTabs();
setUpWorkbench();
setUpSettings();
setUpEnv();
setUpLogLines();
setUpTimes();
setUpTail();
setUpLatency();
setUpPng();
document.addEventListener("click", (event) => event.target.closest?.("[data-close-notice]")?.parentElement.remove());
// Last: it connects when everything that listens to it is there.
setUpLive();

// Remembered events may hold what the next user should not see. Drafts outlive a session that has merely ended: each is offered
// to the user who wrote it and to nobody else.
if (document.getElementById("login-token")) clearRemembered(address.searchParams.has("bye"));
else forgetDraftsOfOthers();

// A notice belongs to the change that was just made: a reload should not repeat it.
if (address.searchParams.has("notice") || address.searchParams.has("bye")) {
  address.searchParams.delete("notice");
  address.searchParams.delete("bye");
  history.replaceState(history.state, "", address);
}
