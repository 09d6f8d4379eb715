// Loader hooks: whoever imports the tool gets it with the exports that wrap.mjs replaces.
const MARK = "hearth-suite";
let tool;
let replaced;

export function initialize(data) {
  tool = data.tool;
  replaced = data.replaced;
}

export async function resolve(specifier, context, next) {
  const found = await next(specifier, context);
  if (specifier !== tool || found.format === "commonjs") return found;
  const url = new URL(found.url);
  url.searchParams.set(MARK, "1");
  return { ...found, url: url.href, format: "module", shortCircuit: true };
}

export async function load(url, context, next) {
  const real = new URL(url);
  if (!real.searchParams.has(MARK)) return next(url, context);
  real.searchParams.delete(MARK);
  const source = `import * as real from ${JSON.stringify(real.href)};
export * from ${JSON.stringify(real.href)};
export const { ${replaced.join(", ")} } = globalThis.hearthSuiteWrap(real);`;
  return { format: "module", source, shortCircuit: true };
}
