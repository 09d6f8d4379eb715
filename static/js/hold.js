// Keeps elements from changing while the user interacts with them.

/** A button or a finger is down, wherever: what it went down on must still be there when it comes up. */
let pressed = false;
/** Whether the last pointer can rest on something: after a touch, `:hover` says what was touched last. */
let rests = true;

export function isSelecting(element) {
  const selection = document.getSelection();
  return selection !== null && !selection.isCollapsed && selection.containsNode(element, true);
}

/** Whether the pointer is over the element, a button is down, or the focus or a selection is inside. */
export function isHeld(element) {
  return (
    pressed || (rests && element.matches(":hover")) || element.contains(document.activeElement) || isSelecting(element)
  );
}

export function setUpHolding() {
  const set = (value) => () => {
    pressed = value;
  };
  for (const type of ["pointermove", "pointerdown"]) {
    addEventListener(
      type,
      (event) => {
        rests = event.pointerType !== "touch";
      },
      { capture: true, passive: true },
    );
  }
  addEventListener("pointerdown", set(true), true);
  // The click follows the release: what it is meant for stays until then.
  const release = () => setTimeout(set(false));
  for (const type of ["pointerup", "pointercancel", "dragend", "blur"]) addEventListener(type, release, true);
}
