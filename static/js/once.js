// A page with `data-once` responds to a form and shows a secret once. A reload must neither offer to resubmit the form
// nor create a second secret; it shows the form's page instead.

export function setUpOnce() {
  if (document.querySelector("[data-once]")) history.replaceState(history.state, "", location.href);
}
