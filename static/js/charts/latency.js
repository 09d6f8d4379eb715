// The Latency tab's charts, redrawn for each event of the stream, once a second.

import { onLive } from "../live.js";
import { HeatMap } from "./heat.js";
import { Histogram } from "./histogram.js";
import { count, decadesAround, duration } from "./scale.js";

/** The marks of percentiles that there are enough samples for. */
const known = (marks) => marks.filter(([, us]) => us !== null);

const chart = (name) => document.querySelector(`[data-chart="${name}"]`);

/** The rows of the table: every bar of the whole, with what of it is warm and cold. */
function fillTable(body, { histogram, warm, cold }) {
  const of = (bars) => new Map(bars.map(([, upTo, many]) => [upTo, many]));
  const [warmer, colder] = [of(warm.histogram), of(cold.histogram)];
  const rows = histogram.map(([above, upTo, many]) => {
    const row = document.createElement("tr");
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = `${duration(above)} to ${duration(upTo)}`;
    row.append(head);
    for (const value of [many, warmer.get(upTo) ?? 0, colder.get(upTo) ?? 0]) {
      const cell = document.createElement("td");
      cell.className = "num";
      cell.textContent = count.format(value);
      row.append(cell);
    }
    return row;
  });
  body.replaceChildren(...rows);
}

export function setUpLatency() {
  const box = chart("histogram");
  if (!box) return;
  const all = new Histogram(box, ["bars-all"]);
  const warm = new Histogram(chart("warm"), ["bars-warm"]);
  const cold = new Histogram(chart("cold"), ["bars-cold"]);
  const heat = new HeatMap(
    chart("heat"),
    document.getElementById("heat-readout"),
    document.querySelector(".heat-legend"),
  );
  const details = document.getElementById("histogram-details");
  const body = document.getElementById("histogram-rows");
  let shown;

  const draw = () => {
    if (!shown) return;
    // One axis for all three, so that warm and cold can be compared by eye.
    const domain = decadesAround(shown.histogram);
    const { p50, p99 } = shown.total_us;
    all.draw(
      [shown.histogram],
      domain,
      known([
        ["p50", p50],
        ["p99", p99],
      ]),
    );
    warm.draw([shown.warm.histogram], domain, known([["p50", shown.warm.total_us.p50]]));
    cold.draw([shown.cold.histogram], domain, known([["p50", shown.cold.total_us.p50]]));
    if (details.open) fillTable(body, shown);
  };
  // A stream that begins sends the whole heat map.
  document.addEventListener("live-hello", () => heat.clear());
  onLive("latency", (latency) => {
    shown = latency;
    draw();
    heat.update(latency);
  });
  details.addEventListener("toggle", draw);
  document.addEventListener("theme", () => heat.draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => heat.draw());
  new ResizeObserver(() => {
    draw();
    heat.draw();
  }).observe(box);
}
