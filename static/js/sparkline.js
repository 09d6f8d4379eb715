// Requests and errors in each of the last seconds: the drawing of `web/src/sparkline.rs`, one second further each second.

import { onLive } from "./live.js";

const WIDTH = 300;
const HEIGHT = 60;

function area(values, most) {
  if (!values.some((value) => value > 0)) return "";
  const left = WIDTH - values.length;
  const points = values.map((value, at) => `L${left + at} ${(HEIGHT * (1 - value / Math.max(most, 1))).toFixed(1)}`);
  return `M${left} ${HEIGHT}${points.join("")}V${HEIGHT}Z`;
}

export function setUpSparkline() {
  let seconds = [];
  onLive("traffic", ({ all, last }) => {
    if (all) seconds = all;
    else seconds.push(last);
    seconds = seconds.slice(-WIDTH);
    const chart = document.querySelector("[data-sparkline]");
    if (!chart) return;
    const most = seconds.reduce((largest, [requests]) => Math.max(largest, requests), 0);
    for (const [at, name] of ["spark-requests", "spark-errors"].entries()) {
      const path = area(
        seconds.map((second) => second[at]),
        most,
      );
      chart.querySelector(`.${name}`).setAttribute("d", path);
    }
  });
}
