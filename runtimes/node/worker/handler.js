// Finds a function's handler from its setting, `module.function`.
"use strict";

const { spawnSync } = require("node:child_process");
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { Fault } = require("./errors.js");

// What a module may be called, in the order of preference.
const EXTENSIONS = [".js", ".mjs", ".cjs"];
// Longest check of a module's syntax, in milliseconds: it runs after an import has failed and reads one file.
const CHECK_MS = 5000;

/**
 * Imports the module of `setting` from `codeDir` and returns its handler. As with Lambda, the module may be a path, and
 * what follows its first dot may lead into objects: `src/main.api.handler`.
 *
 * Throws a `Fault` when the setting is malformed or names nothing callable, and whatever the import itself throws.
 */
async function load(setting, codeDir) {
  const [moduleName, names] = split(setting);
  const file = find(moduleName, codeDir);
  addLayer(codeDir);
  // The import takes both kinds of modules, and tells by name, package.json or syntax which one it has.
  const module = await import(pathToFileURL(file).href).catch((error) => {
    throw located(error, file);
  });
  const handler = lookUp(module, names) ?? lookUp(module.default, names);
  if (handler === undefined || handler === null) {
    throw new Fault("Runtime.HandlerNotFound", `${setting} is undefined or not exported`);
  }
  if (typeof handler !== "function") {
    throw new Fault("Runtime.HandlerNotCallable", `${setting} is a ${typeof handler}, not a function`);
  }
  return handler;
}

/** Lets `require` find the packages of a Lambda layer that was unpacked into the code. As on Lambda, `import` of an ES
 * module does not look there. */
function addLayer(codeDir) {
  const [major] = process.versions.node.split(".");
  const found = [`nodejs/node${major}/node_modules`, "nodejs/node_modules"]
    .map((name) => path.join(codeDir, name))
    .filter((dir) => fs.statSync(dir, { throwIfNoEntry: false })?.isDirectory());
  if (found.length > 0) {
    const own = process.env.NODE_PATH;
    process.env.NODE_PATH = [...(own ? [own] : []), ...found].join(path.delimiter);
    // What Node itself does with the variable when it starts.
    Module._initPaths();
  }
}

/** `dir/mod.a.b` as [`dir/mod`, [`a`, `b`]]. */
function split(setting) {
  const slash = setting.lastIndexOf("/") + 1;
  const [base, ...names] = setting.slice(slash).split(".");
  if (base === "" || names.length === 0 || names.includes("") || setting.split("/").includes("..")) {
    throw new Fault("Runtime.MalformedHandlerName", `Bad handler '${setting}': expected module.function`);
  }
  return [setting.slice(0, slash) + base, names];
}

function find(moduleName, codeDir) {
  const candidates = EXTENSIONS.map((extension) => path.resolve(codeDir, moduleName + extension));
  const found = candidates.find((candidate) => fs.statSync(candidate, { throwIfNoEntry: false })?.isFile());
  if (found === undefined) {
    throw new Fault("Runtime.ImportModuleError", `Cannot find module '${moduleName}' (.js, .mjs or .cjs)`);
  }
  return found;
}

function lookUp(module, names) {
  return names.reduce((value, name) => value?.[name], module);
}

/** The stack of a syntax error in an ES module does not say where it is; a check of the file does. */
function located(error, file) {
  if (!(error instanceof SyntaxError) || error.stack.includes(file)) {
    return error;
  }
  const check = spawnSync(process.execPath, ["--check", file], { encoding: "utf8", timeout: CHECK_MS });
  // file:line, the line, a mark below the place; then the error itself.
  const [place] = (check.stderr ?? "").split("\n\n");
  if (place.includes(file)) {
    error.stack = `${place}\n\n${error.stack}`;
  }
  return error;
}

module.exports = { load, split };
