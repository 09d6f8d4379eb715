// tinybench with a Bench that lists its tasks, or runs one of them, instead of running all.
import { writeFileSync } from "node:fs";

const { do: what, select, time_s, report } = JSON.parse(process.env.HEARTH_SUITE);

/** The exports that are replaced. */
export const REPLACED = ["Bench"];

/** All of this process, in the order of their construction: by their number a task is found again. */
const benches = [];

export function tasks() {
  return benches.flatMap((bench, number) => bench.tasks.map((task) => ({ bench: number, task: task.name })));
}

export function wrap(real) {
  return {
    Bench: class Bench extends real.Bench {
      #number;

      constructor(options) {
        super(time_s === undefined ? options : { ...options, time: time_s * 1000 });
        this.#number = benches.push(this) - 1;
      }

      async run() {
        if (!this.#choose()) return this.tasks;
        await super.run();
        return this.#tell();
      }

      runSync() {
        if (!this.#choose()) return this.tasks;
        super.runSync();
        return this.#tell();
      }

      async warmup() {
        if (this.#choose()) await super.warmup();
      }

      /** Whether the task that is wanted is here: the others are removed then. */
      #choose() {
        if (what !== "run" || this.#number !== select.bench) return false;
        for (const { name } of [...this.tasks]) {
          if (name !== select.task) this.remove(name);
        }
        return this.tasks.length > 0;
      }

      #tell() {
        const [task] = this.tasks;
        writeFileSync(report, JSON.stringify(result(task.result)));
        process.exit(0);
      }
    },
  };
}

/** Of the result of any version: 2 has times beside each other, later ones in `latency`; all in ms. */
function result(found) {
  const latency = found?.latency ?? found ?? {};
  const error = found?.error;
  return {
    median_ms: latency.p50 ?? median(latency.samples ?? found?.samples ?? []),
    samples: latency.samplesCount ?? (latency.samples ?? found?.samples ?? []).length,
    total_ms: found?.totalTime,
    error: error === undefined ? undefined : String(error?.stack ?? error),
  };
}

function median(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
