// Entry of a function's template: `node --single-threaded --v8-pool-size=1 bootstrap.js` with the control socket on
// descriptor 3. Words after it: `--probe` tries out whether this Node can be forked; `--prefork` is for one where it
// cannot; `--first-preforked` and `--preforked` are the processes that the template then starts.
"use strict";

const [mode] = process.argv.splice(2);

if (mode === "--probe") {
  require("./worker/probe.js").run();
} else {
  require("./worker/template.js").main(mode ?? "");
}
