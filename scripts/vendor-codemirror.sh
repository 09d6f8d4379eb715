#!/usr/bin/env bash
# Makes static/vendor/codemirror: the parts of CodeMirror 6 that the console uses, as one ES module, with the licences of
# everything in it. Nothing of this is needed to build or to run Hearth: the result is committed.
#
# To update: change versions in scripts/codemirror/package.json, run `npm install --package-lock-only` there, run this,
# and put the printed table row into static/vendor/README.md. The same versions give the same bytes.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
destination=$PWD/static/vendor/codemirror
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp scripts/codemirror/{package.json,package-lock.json,entry.js} "$work/"
cd "$work"
npm ci --no-audit --no-fund --loglevel=error

node_modules/.bin/esbuild entry.js --bundle --format=esm --minify --target=es2022 --charset=utf8 \
  --legal-comments=none --metafile=meta.json --outfile=codemirror.js --log-level=warning

# Which packages are really in the bundle, with their licences.
node - >LICENSE <<'JS'
const fs = require("node:fs");
const inputs = Object.keys(JSON.parse(fs.readFileSync("meta.json", "utf8")).inputs);
const names = new Set(
  inputs.map((input) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1]).filter(Boolean),
);
const byText = new Map();
for (const name of [...names].sort()) {
  const directory = `node_modules/${name}`;
  const { version, license } = JSON.parse(fs.readFileSync(`${directory}/package.json`, "utf8"));
  const file = fs.readdirSync(directory).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} has no licence file`);
  const text = fs.readFileSync(`${directory}/${file}`, "utf8").trim();
  byText.set(text, [...(byText.get(text) ?? []), `${name} ${version} (${license})`]);
}
const parts = [...byText].map(([text, packages]) => `${packages.join("\n")}\n\n${text}\n`);
process.stdout.write(`The bundle codemirror.js holds these packages.\n\n${parts.join(`\n${"-".repeat(80)}\n\n`)}`);
JS

mkdir -p "$destination"
cp codemirror.js LICENSE "$destination/"
version=$(node -p 'require("./package.json").dependencies["@codemirror/view"]')
printf '| `codemirror/codemirror.js` | npm `@codemirror/*` and `@lezer/*`, bundled by `scripts/vendor-codemirror.sh` | as in `scripts/codemirror/package-lock.json`; view %s | MIT, `codemirror/LICENSE` | `%s` |\n' \
  "$version" "$(sha256sum codemirror.js | cut -d' ' -f1)"
