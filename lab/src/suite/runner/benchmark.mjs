// Imports one file of a suite. Its benchmarks are made and run by the file itself, through wrap.mjs.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { tasks } from "./wrap.mjs";

const { do: what, root, file, report } = JSON.parse(process.env.HEARTH_SUITE);

if (what === "list") process.on("exit", (code) => code === 0 && writeFileSync(report, JSON.stringify(tasks())));
await import(pathToFileURL(join(root, file)));
