// Axes and their number formats.

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element with attributes. */
export function svg(name, attributes = {}, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
}

/** A duration in µs in two or three digits: `10 µs`, `1.33 ms`, `2 s`. */
export function duration(us) {
  const [value, unit] = us < 1_000 ? [us, "µs"] : us < 1_000_000 ? [us / 1_000, "ms"] : [us / 1_000_000, "s"];
  return `${Number(value.toPrecision(3))} ${unit}`;
}

/** A logarithmic scale from `low` to `high` µs onto `from` to `to` pixels. */
export function logScale(low, high, from, to) {
  const [first, last] = [Math.log10(low), Math.log10(high)];
  return (us) => from + ((Math.log10(Math.max(us, low)) - first) / (last - first)) * (to - from);
}

/** The powers of ten from `low` to `high` µs. */
export function decades(low, high) {
  const ticks = [];
  for (let tick = 10 ** Math.ceil(Math.log10(low) - 1e-9); tick <= high * 1.000001; tick *= 10) ticks.push(tick);
  return ticks;
}

/** The whole decades around bars, so that the axis moves rarely; one decade when there are none. */
export function decadesAround(bars) {
  if (bars.length === 0) return [100, 10_000];
  const low = 10 ** Math.floor(Math.log10(Math.max(bars[0][0], 1)) + 1e-9);
  const high = 10 ** Math.ceil(Math.log10(bars.at(-1)[1]) - 1e-9);
  return [low, Math.max(high, low * 10)];
}

/** A time of day in UTC, with seconds or with the day where those tell times apart. */
export function clock(ms, spanS) {
  const text = new Date(ms).toISOString();
  if (spanS <= 600) return text.slice(11, 19);
  if (spanS <= 2 * 86_400) return text.slice(11, 16);
  return `${text.slice(5, 10)} ${text.slice(11, 16)}`;
}

export const count = new Intl.NumberFormat("en-US");
