// mitata whose run() lists its benchmarks, or runs one of them, instead of running all.
import { writeFileSync } from "node:fs";

const { do: what, select, time_s, report } = JSON.parse(process.env.HEARTH_SUITE);

/** The exports that are replaced. */
export const REPLACED = ["bench", "group", "run"];

/** All benchmarks of this process in their order, each with the name of its group, and the groups that are being filled. */
const benches = [];
const groups = [];

/** All combinations of the arguments, in mitata's order: the first one changes fastest. A benchmark without any has one. */
function combinations(args) {
  let all = [{}];
  for (const [name, values] of Object.entries(args)) {
    all = values.flatMap((value) => all.map((one) => ({ ...one, [name]: value })));
  }
  return all;
}

/** What mitata would print as its name, with the arguments where those do not tell it from the others. */
function title(bench, args) {
  const entries = Object.entries(args);
  const filled = entries.reduce((name, [key, value]) => name.replaceAll(`$${key}`, value), bench._name);
  const isTold = entries.every(([key, values]) => bench._args[key].length < 2 || bench._name.includes(`$${key}`));
  return isTold ? filled : `${filled} (${entries.map(([key, value]) => `${key}: ${value}`).join(", ")})`;
}

/** Each benchmark with each combination of its arguments, by a name that no other has. */
function cases() {
  const seen = new Map();
  return benches.flatMap(({ bench, group }) =>
    combinations(bench._args).map((args) => {
      const name = [...group, title(bench, args)].join(" > ");
      const number = (seen.get(name) ?? 0) + 1;
      seen.set(name, number);
      return { bench, args, name: number === 1 ? name : `${name} #${number}` };
    }),
  );
}

export function tasks() {
  return cases().map(({ name }) => ({ task: name }));
}

export function wrap(real) {
  return {
    bench(...given) {
      const bench = real.bench(...given);
      benches.push({ bench, group: [...groups] });
      return bench;
    },

    group(...given) {
      const name = given.find((one) => typeof one === "string");
      if (name === undefined) return real.group(...given);
      groups.push(name);
      let filled;
      try {
        filled = real.group(...given);
      } finally {
        if (!(filled instanceof Promise)) groups.pop();
      }
      return filled instanceof Promise ? filled.finally(() => groups.pop()) : filled;
    },

    async run() {
      const chosen = what === "run" ? cases().find(({ name }) => name === select.task) : undefined;
      if (chosen !== undefined) await tell(real, chosen);
      return { layout: [], context: {}, benchmarks: [] };
    },
  };
}

/** Measures as mitata's run() does, but for as long as is wanted, and without its own calibration of empty functions. */
async function tell(real, { bench, args }) {
  const options = { min_cpu_time: time_s * 1e9, inner_gc: bench._gc === "inner" };
  if (bench._gc === false) options.gc = false;
  if (Object.keys(args).length > 0) options.args = args;
  let told;
  try {
    const { p50, avg, ticks, samples } = await real.measure(bench.f, options);
    told = { median_ms: p50 / 1e6, samples: samples.length, total_ms: (avg * ticks) / 1e6 };
  } catch (error) {
    told = { error: String(error?.stack ?? error) };
  }
  writeFileSync(report, JSON.stringify(told));
  process.exit(0);
}
