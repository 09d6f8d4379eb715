// Buttons with `data-copy="ID"` copy the text of that element.

const SHOWN_MS = 1_500;

async function copy(source) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(source.textContent);
    return;
  }
  // Over plain http from another host there is no clipboard object: select the text and copy the selection.
  const selection = document.getSelection();
  selection.selectAllChildren(source);
  if (!document.execCommand("copy")) throw new Error("copying is not allowed");
  selection.removeAllRanges();
}

/** Copies the text of an element; the button says for a moment what came of it. */
export async function copyText(source, button) {
  const label = button.dataset.label ?? button.innerHTML;
  button.dataset.label = label;
  try {
    await copy(source);
    button.textContent = "Copied";
  } catch {
    // The text is selected at least, so that the keyboard can copy it.
    document.getSelection().selectAllChildren(source);
    button.textContent = "Press Ctrl+C";
  }
  setTimeout(() => {
    button.innerHTML = label;
  }, SHOWN_MS);
}

export function setUpCopying() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    const source = button && document.getElementById(button.dataset.copy);
    if (source) copyText(source, button);
  });
}
