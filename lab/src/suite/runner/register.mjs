// Puts the hooks of hooks.mjs before the loader, for `import` and for `require`.
import Module, { register } from "node:module";

const TOOL = JSON.parse(process.env.HEARTH_SUITE).tool;

const { REPLACED, wrap } = await import("./wrap.mjs");
globalThis.hearthSuiteWrap = wrap;

register("./hooks.mjs", import.meta.url, { data: { tool: TOOL, replaced: REPLACED } });

const load = Module._load;
const wrapped = new Map();
Module._load = function (request, ...rest) {
  const real = load.call(this, request, ...rest);
  if (request !== TOOL) return real;
  if (!wrapped.has(real)) wrapped.set(real, { ...real, ...wrap(real) });
  return wrapped.get(real);
};
