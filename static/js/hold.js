// What a person is at is not pulled away: whether an element may change now.

/** A button or a finger is down, wherever: what it went down on must still be there when it comes up. */
let pressed = false;
/** Whether a pointer can rest on something without pressing it; after a touch, `:hover` says what was touched last. */
const canHover = matchMedia("(hover: hover)");

export function isSelecting(element) {
  const selection = document.getSelection();
  return selection !== null && !selection.isCollapsed && selection.containsNode(element, true);
}

/** Whether the pointer is over the element, a button is down, or the focus or a selection is inside. */
export function isHeld(element) {
  return (
    pressed ||
    (canHover.matches && element.matches(":hover")) ||
    element.contains(document.activeElement) ||
    isSelecting(element)
  );
}

export function setUpHolding() {
  const set = (value) => () => {
    pressed = value;
  };
  addEventListener("pointerdown", set(true), true);
  // The click follows the release: what it is meant for stays until then.
  const release = () => setTimeout(set(false));
  for (const type of ["pointerup", "pointercancel", "dragend", "blur"]) addEventListener(type, release, true);
}
