// A page with `data-once` answers a form and shows a secret that cannot be shown again: a reload must neither ask to send
// the form once more nor make a second one. It shows the page the form belongs to instead.

export function setUpOnce() {
  if (document.querySelector("[data-once]")) history.replaceState(history.state, "", location.href);
}
