// A heat map of latency over time: counts as colour, on a canvas, because a week is some thousand cells. The colours are
// those of the legend's swatches, so that a change of theme changes both.

import { clock, count, decades, duration, logScale } from "./scale.js";

const LEVELS = 5;
const MARGIN = { top: 6, right: 8, bottom: 22, left: 58 };

export class HeatMap {
  constructor(box, readout, legend) {
    this.box = box;
    this.readout = readout;
    this.legend = legend;
    this.canvas = document.createElement("canvas");
    box.append(this.canvas);
    this.columns = new Map();
    this.bounds = [];
    this.cursor = null;
    box.addEventListener("pointermove", (event) => this.point(event));
    box.addEventListener("pointerleave", () => this.leave());
    box.addEventListener("click", (event) => {
      this.point(event);
      this.open();
    });
    box.addEventListener("keydown", (event) => this.key(event));
    box.addEventListener("blur", () => this.leave());
  }

  /** Takes the columns that changed, drops those before the window, and draws. */
  update({ from, window_s: spanS, heat_map: map, total_us: total }) {
    this.p99 = total.p99;
    this.spanS = spanS;
    this.from = Date.parse(from);
    this.bounds = map.bounds_us;
    for (const column of map.columns) this.columns.set(Date.parse(column.from), column);
    for (const [at, column] of this.columns) {
      if (at + column.seconds * 1000 <= this.from) this.columns.delete(at);
    }
    this.draw();
  }

  /** Starts anew: what comes next is everything. */
  clear() {
    this.columns.clear();
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.box;
    if (width === 0 || height === 0 || this.bounds.length === 0) return;
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    const ink = this.canvas.getContext("2d");
    ink.scale(scale, scale);
    this.place(width, height);
    const colours = this.colours();
    let most = 0;
    for (const column of this.columns.values()) for (const [, many] of column.counts) most = Math.max(most, many);
    this.most = most;
    ink.fillStyle = colours[0];
    ink.fillRect(MARGIN.left, MARGIN.top, width - MARGIN.left - MARGIN.right, height - MARGIN.top - MARGIN.bottom);
    for (const [at, column] of this.columns) {
      const left = Math.max(this.x(at), MARGIN.left);
      const right = this.x(at + column.seconds * 1000);
      for (const [row, many] of column.counts) {
        const [top, bottom] = this.rowSpan(row);
        ink.fillStyle = colours[this.level(many)];
        ink.fillRect(left, top, Math.max(right - left - 0.5, 1), bottom - top - 0.5);
      }
    }
    this.line(ink, width);
    this.labels(ink, width, height);
    this.frame(ink);
    this.explain();
  }

  /** Where rows and times lie. The rows are those that hold something, and one more at each end. */
  place(width, height) {
    let [low, high] = [this.bounds.length, -1];
    for (const column of this.columns.values()) {
      for (const [row] of column.counts) [low, high] = [Math.min(low, row), Math.max(high, row)];
    }
    if (high < 0) [low, high] = [16, 40];
    this.low = Math.max(low - 1, 0);
    this.high = Math.min(high + 1, this.bounds.length - 1);
    const bottom = this.bounds[Math.max(this.low - 1, 0)];
    this.y = logScale(bottom, this.bounds[this.high], height - MARGIN.bottom, MARGIN.top);
    let end = this.from + this.spanS * 1000;
    for (const [at, column] of this.columns) end = Math.max(end, at + column.seconds * 1000);
    this.end = end;
    this.x = (ms) => MARGIN.left + ((ms - this.from) / (end - this.from)) * (width - MARGIN.left - MARGIN.right);
  }

  rowSpan(row) {
    return [this.y(this.bounds[row]), this.y(this.bounds[Math.max(row - 1, 0)])];
  }

  /** 1 to 5: a cell with as many as the fullest is 5, one with one is 1, between them it goes by the logarithm. */
  level(many) {
    if (this.most <= 1) return LEVELS;
    return 1 + Math.min(LEVELS - 1, Math.floor((LEVELS * Math.log(many)) / Math.log(this.most + 0.001)));
  }

  colours() {
    const swatches = this.legend.querySelectorAll(".heat-swatch");
    return Array.from(swatches, (swatch) => getComputedStyle(swatch).backgroundColor);
  }

  labels(ink, width, height) {
    const style = getComputedStyle(this.box);
    ink.fillStyle = style.color;
    ink.font = `12px ${style.fontFamily}`;
    ink.textAlign = "right";
    ink.textBaseline = "middle";
    for (const tick of decades(this.bounds[Math.max(this.low - 1, 0)], this.bounds[this.high])) {
      ink.fillText(duration(tick), MARGIN.left - 6, Math.min(Math.max(this.y(tick), 8), height - MARGIN.bottom));
    }
    ink.textBaseline = "alphabetic";
    const times = width < 480 ? [0, 1] : [0, 0.5, 1];
    for (const part of times) {
      const at = this.from + part * (this.end - this.from);
      ink.textAlign = part === 0 ? "left" : part === 1 ? "right" : "center";
      ink.fillText(clock(at, this.spanS), this.x(at), height - 6);
    }
  }

  /** The 99th percentile: what lies above it is the tail. */
  line(ink, width) {
    if (this.p99 === null || this.p99 > this.bounds[this.high]) return;
    const y = Math.round(this.y(this.p99)) + 0.5;
    ink.strokeStyle = getComputedStyle(this.box).color;
    ink.lineWidth = 1;
    ink.setLineDash([4, 3]);
    ink.beginPath();
    ink.moveTo(MARGIN.left, y);
    ink.lineTo(width - MARGIN.right, y);
    ink.stroke();
    ink.setLineDash([]);
  }

  /** Lists the invocations of the cell under the cursor. */
  open() {
    if (!this.cursor || this.many() === 0) return;
    const { at, row } = this.cursor;
    const query = new URLSearchParams({
      at: at / 1000,
      seconds: this.columns.get(at).seconds,
      above: this.bounds[row - 1] ?? 0,
      up_to: this.bounds[row],
    });
    location.assign(`${this.box.dataset.cells}?${query}`);
  }

  /** How many are in the cell under the cursor. */
  many() {
    const column = this.columns.get(this.cursor.at);
    return column?.counts.find(([row]) => row === this.cursor.row)?.[1] ?? 0;
  }

  frame(ink) {
    if (!this.cursor) return;
    const column = this.columns.get(this.cursor.at);
    const [top, bottom] = this.rowSpan(this.cursor.row);
    const left = this.x(this.cursor.at);
    const right = this.x(this.cursor.at + (column?.seconds ?? this.step()) * 1000);
    ink.strokeStyle = getComputedStyle(this.box).color;
    ink.lineWidth = 2;
    ink.strokeRect(left, top, right - left, bottom - top);
  }

  /** Seconds of the narrowest column: a step of the cursor where nothing happened. */
  step() {
    let step = this.spanS / 12;
    for (const column of this.columns.values()) step = Math.min(step, column.seconds);
    return step;
  }

  /** The legend: from how many on a cell has a colour. A colour that no number of invocations gives is left out. */
  explain() {
    const first = [0];
    for (let many = 1; many <= Math.min(this.most, 50); many++) first[this.level(many)] ??= many;
    for (let level = 1; level <= LEVELS; level++) {
      if (this.most > 50) first[level] = level === 1 ? 1 : Math.ceil((this.most + 0.001) ** ((level - 1) / LEVELS));
    }
    for (const label of this.legend.querySelectorAll("[data-heat-level]")) {
      const from = first[Number(label.dataset.heatLevel)];
      label.parentElement.hidden = from === undefined;
      label.textContent = from === undefined ? "" : from === this.most ? count.format(from) : `${count.format(from)}+`;
    }
  }

  point(event) {
    const frame = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
    for (const [at, column] of this.columns) {
      if (x < this.x(at) || x >= this.x(at + column.seconds * 1000)) continue;
      for (let row = this.low; row <= this.high; row++) {
        const [top, bottom] = this.rowSpan(row);
        if (y >= top && y < bottom) {
          this.move({ at, row });
          return;
        }
      }
    }
  }

  leave() {
    if (document.activeElement === this.box) return;
    this.cursor = null;
    this.box.classList.remove("heat-opens");
    this.draw();
  }

  key(event) {
    if (event.key === "Enter") {
      this.open();
      return;
    }
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!steps || this.columns.size === 0) return;
    event.preventDefault();
    const times = Array.from(this.columns.keys()).sort((a, b) => a - b);
    const fullest = () => {
      const at = times.at(-1);
      const counts = this.columns.get(at).counts;
      return { at, row: counts.reduce((best, cell) => (cell[1] > best[1] ? cell : best), counts[0])[0] };
    };
    if (!this.cursor || !this.columns.has(this.cursor.at)) {
      this.move(fullest());
      return;
    }
    const [right, up] = steps;
    const index = Math.min(Math.max(times.indexOf(this.cursor.at) + right, 0), times.length - 1);
    this.move({ at: times[index], row: Math.min(Math.max(this.cursor.row + up, this.low), this.high) });
  }

  move(cursor) {
    if (this.cursor?.at === cursor.at && this.cursor.row === cursor.row) return;
    this.cursor = cursor;
    this.draw();
    const column = this.columns.get(cursor.at);
    const many = this.many();
    this.box.classList.toggle("heat-opens", many > 0);
    const [above, upTo] = [this.bounds[cursor.row - 1] ?? 0, this.bounds[cursor.row]];
    const times = [cursor.at, cursor.at + column.seconds * 1000].map((at) => clock(at, this.spanS));
    const words = many === 1 ? "invocation" : "invocations";
    this.readout.textContent = `${times.join(" to ")} UTC, ${duration(above)} to ${duration(upTo)}: ${count.format(many)} ${words}`;
  }
}
