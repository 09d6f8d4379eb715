// Workloads of the overhead study. Each returns its invocation's id, by which the history has its stages, and what it computed.

const answer = (context, value) => ({ id: context.awsRequestId, value });

export const empty = async (_event, context) => answer(context, 0);

// Pi by Monte Carlo.
export const math = async (event, context) => {
  let inside = 0;
  for (let point = 0; point < event.points; point += 1) {
    const x = Math.random();
    const y = Math.random();
    if (x * x + y * y <= 1) inside += 1;
  }
  return answer(context, (4 * inside) / event.points);
};

export const sleep = async (event, context) => {
  await new Promise((resolve) => setTimeout(resolve, event.sleep_ms));
  return answer(context, event.sleep_ms);
};

// Each pixel's mean with its neighbours along one axis; `step` leads to the next one, `across` to the next line.
const blurred = (pixels, size, step, across) => {
  const out = new Uint8Array(size * size);
  for (let line = 0; line < size; line += 1) {
    for (let place = 0; place < size; place += 1) {
      const at = line * across + place * step;
      const before = place > 0 ? at - step : at;
      const after = place < size - 1 ? at + step : at;
      out[at] = Math.floor((pixels[before] + pixels[at] + pixels[after]) / 3);
    }
  }
  return out;
};

// A grey bitmap, box-blurred along both axes. Its value is the sum of all pixels.
export const image = async (event, context) => {
  const size = event.pixels;
  const bitmap = new Uint8Array(size * size);
  for (let y = 0; y < size; y += 1) {
    for (let x = 0; x < size; x += 1) bitmap[y * size + x] = (x * y + 7 * x) & 255;
  }
  const blurredTwice = blurred(blurred(bitmap, size, 1, size), size, size, 1);
  return answer(
    context,
    blurredTwice.reduce((sum, pixel) => sum + pixel, 0),
  );
};
