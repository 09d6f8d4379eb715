// A histogram on a logarithmic axis, in SVG. Bars are `[above µs, up to µs, count]`; elements are reused on each
// redraw.

import { count, decades, duration, logScale, svg } from "./scale.js";

const MARGIN = { top: 18, right: 8, bottom: 22, left: 8 };

export class Histogram {
  /** `parts`: classes of the bars that are drawn over each other, the first one behind. */
  constructor(box, parts) {
    this.box = box;
    this.root = svg("svg", { "aria-hidden": "true", class: "plot" });
    this.axis = svg("g", { class: "axis" });
    this.layers = parts.map((name) => svg("g", { class: name }));
    this.marks = svg("g", { class: "marks" });
    this.empty = svg("text", { class: "no-data", "text-anchor": "middle" }, "No invocations in this window");
    this.root.append(this.axis, ...this.layers, this.marks, this.empty);
    box.append(this.root);
  }

  /** `layers`: bars of each part. `domain`: lowest and highest µs of the axis. `marks`: `[label, µs]`. */
  draw(layers, [low, high], marks = []) {
    const width = this.box.clientWidth;
    const height = this.box.clientHeight;
    if (width === 0 || height === 0) return;
    this.root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const bottom = height - MARGIN.bottom;
    const x = logScale(low, high, MARGIN.left, width - MARGIN.right);
    const most = layers.flat().reduce((largest, [, , many]) => Math.max(largest, many), 0);
    this.empty.setAttribute("x", String(width / 2));
    this.empty.setAttribute("y", String(height / 2));
    this.empty.classList.toggle("hidden", most > 0);
    this.drawAxis(x, decades(low, high), bottom, width);
    for (const [at, bars] of layers.entries()) {
      this.drawBars(this.layers[at], bars, x, bottom, most);
    }
    this.drawMarks(most > 0 ? marks : [], x, bottom, width);
  }

  drawAxis(x, ticks, bottom, width) {
    const key = `${ticks.join()} ${width} ${bottom}`;
    if (this.axisKey === key) return;
    this.axisKey = key;
    this.axis.replaceChildren(svg("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: bottom, y2: bottom }));
    for (const [at, tick] of ticks.entries()) {
      const left = x(tick);
      const anchor = at === 0 ? "start" : at === ticks.length - 1 ? "end" : "middle";
      this.axis.append(
        svg("line", { x1: left, x2: left, y1: MARGIN.top, y2: bottom, class: "grid" }),
        svg("text", { x: left, y: bottom + 16, "text-anchor": anchor }, duration(tick)),
      );
    }
  }

  drawBars(layer, bars, x, bottom, most) {
    while (layer.childElementCount > bars.length) layer.lastElementChild.remove();
    while (layer.childElementCount < bars.length) {
      const bar = svg("rect");
      bar.append(svg("title"));
      layer.append(bar);
    }
    for (const [at, [above, upTo, many]] of bars.entries()) {
      const bar = layer.children[at];
      const left = x(Math.max(above, 1));
      // What is there is seen, however little it is.
      const high = Math.max(1.5, (many / most) * (bottom - MARGIN.top));
      bar.setAttribute("x", left.toFixed(1));
      bar.setAttribute("width", Math.max(1, x(upTo) - left - 1).toFixed(1));
      bar.setAttribute("y", (bottom - high).toFixed(1));
      bar.setAttribute("height", high.toFixed(1));
      bar.firstElementChild.textContent = `${duration(above)} to ${duration(upTo)}: ${count.format(many)}`;
    }
  }

  drawMarks(marks, x, bottom, width) {
    this.marks.replaceChildren();
    let free = -Infinity;
    for (const [label, us] of marks) {
      const left = x(Math.max(us, 1));
      this.marks.append(svg("line", { x1: left, x2: left, y1: MARGIN.top, y2: bottom }));
      // Labels that would lie on each other: the line says enough.
      if (left - free < 34) continue;
      free = left;
      const atEdge = left > width - 40;
      this.marks.append(
        svg("text", { x: left + (atEdge ? -4 : 4), y: 12, "text-anchor": atEdge ? "end" : "start" }, label),
      );
    }
  }
}
