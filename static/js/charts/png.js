// Charts as PNG: the SVG that the page shows, drawn onto a canvas.

/** Pixels of the PNG for one of the SVG: sharp on dense screens and in print. */
const SCALE = 2;

/** The image as the page shows it, on the page's own background. */
function png(image) {
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth * SCALE;
  canvas.height = image.naturalHeight * SCALE;
  const ink = canvas.getContext("2d");
  ink.fillStyle = getComputedStyle(image.closest(".card")).backgroundColor;
  ink.fillRect(0, 0, canvas.width, canvas.height);
  ink.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

async function save(figure) {
  const image = figure.querySelector("img");
  await image.decode();
  const address = URL.createObjectURL(await png(image));
  const link = document.createElement("a");
  link.href = address;
  link.download = `${figure.dataset.plot}.png`;
  link.click();
  // The download has begun by then.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export function setUpPng() {
  for (const figure of document.querySelectorAll("[data-plot]")) {
    const button = figure.querySelector("[data-png]");
    button.hidden = false;
    button.addEventListener("click", () => save(figure));
  }
}
