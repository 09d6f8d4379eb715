// The console's behaviour beyond htmx. Each module finds its elements by a data attribute.

import { setUpLatency } from "./charts/latency.js";
import { setUpConfirming } from "./confirm.js";
import { setUpCopying } from "./copy.js";
import { setUpEditors } from "./editor.js";
import { setUpForms } from "./forms.js";
import { setUpLive } from "./live.js";
import { setUpMenus } from "./menu.js";
import { setUpOnce } from "./once.js";
import { setUpPalette } from "./palette.js";
import { setUpPanel } from "./panel.js";
import { setUpPolling } from "./poll.js";
import { setUpProgress } from "./progress.js";
import { setUpRelativeTimes } from "./relative.js";
import { setUpSettings } from "./settings.js";
import { setUpSparkline } from "./sparkline.js";
import { setUpTabs } from "./tabs.js";
import { setUpTail } from "./tail.js";
import { setUpTheme } from "./theme.js";
import { setUpToasts } from "./toast.js";
import { setUpUnsaved } from "./unsaved.js";
import { setUpWorkbench } from "./workbench.js";

setUpToasts();
setUpMenus();
setUpPalette();
setUpTheme();
setUpForms();
setUpPanel();
setUpEditors();
setUpCopying();
setUpPolling();
setUpOnce();
setUpRelativeTimes();
setUpSparkline();
setUpConfirming();
setUpUnsaved();
setUpProgress();
setUpTabs();
setUpWorkbench();
setUpSettings();
setUpTail();
setUpLatency();
// Last: it connects when all that hear of it are there.
setUpLive();

// Remembered events may hold what the next user should not see.
if (document.getElementById("login-token")) sessionStorage.clear();

// A notice belongs to the change that was just made: a reload should not repeat it.
const address = new URL(location.href);
if (address.searchParams.has("notice") || address.searchParams.has("bye")) {
  address.searchParams.delete("notice");
  address.searchParams.delete("bye");
  history.replaceState(history.state, "", address);
}
