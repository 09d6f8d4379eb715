import { bench, do_not_optimize, group, run } from "mitata";
import { count } from "../words.js";

bench("count $size", function* (state) {
  const text = "word ".repeat(state.get("size"));
  yield () => do_not_optimize(count(text));
}).args("size", [10, 1000]);
group("again", () => {
  bench("count", () => do_not_optimize(count("some words")));
});
await run();
