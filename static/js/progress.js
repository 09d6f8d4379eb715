// Forms with `data-progress` show the progress of an upload, then that the template boots.

const MIB = 1024 * 1024;
/** Uploads below this are over before anybody has read that they began. */
const SHOWN_FROM_BYTES = MIB;

function elements(form) {
  return { bar: form.querySelector(".progress-bar"), text: form.querySelector(".progress-text") };
}

function booting({ bar, text }) {
  if (bar) bar.hidden = true;
  if (text) text.textContent = "Booting the template…";
}

export function setUpProgress() {
  document.addEventListener("htmx:beforeRequest", (event) => {
    const form = event.target.closest?.("form[data-progress]");
    if (form) booting(elements(form));
  });
  document.addEventListener("htmx:xhr:progress", (event) => {
    const form = event.target.closest?.("form[data-progress]");
    const { loaded, total, lengthComputable } = event.detail;
    // The answer's download says how far it is as well; the request is over by then.
    if (!form || !lengthComputable || total < SHOWN_FROM_BYTES) return;
    const parts = elements(form);
    if (loaded >= total) {
      booting(parts);
      return;
    }
    if (!parts.bar || !parts.text) return;
    const percent = Math.floor((100 * loaded) / total);
    parts.bar.hidden = false;
    parts.bar.value = percent;
    parts.text.textContent = `Uploading ${percent}% of ${(total / MIB).toFixed(1)} MiB`;
  });
}
