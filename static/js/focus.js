// Restores the focus after a request: a button that is disabled meanwhile loses it.

export function setUpFocus() {
  const focused = new WeakMap();
  document.addEventListener("htmx:beforeRequest", (event) => {
    focused.set(event.detail.xhr, document.activeElement);
  });
  // The button is enabled again by now. Whatever took the focus meanwhile keeps it.
  document.addEventListener("htmx:afterRequest", (event) => {
    const element = focused.get(event.detail.xhr);
    const nowhere = document.activeElement === null || document.activeElement === document.body;
    if (nowhere && element?.isConnected) element.focus({ preventScroll: true });
  });
}
