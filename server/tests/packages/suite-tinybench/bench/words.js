import { Bench } from "tinybench";
import { count } from "../words.js";

const bench = new Bench({ name: "words", time: 100 });
for (const size of [10, 1000]) {
  const text = "word ".repeat(size);
  bench.add(`count ${size}`, () => count(text));
}
await bench.run();
console.table(bench.table());
