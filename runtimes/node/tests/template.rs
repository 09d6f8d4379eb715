//! The template: boots, reports import errors of every kind, forks, reaps, ends.
#![deny(unsafe_code)]

use std::time::Duration;

use hearth_testkit::figures::{self, Mapping};
use hearth_testkit::worker::{Template, boot, boot_error, contract};
use rustix::process::Signal;
use serde_json::{Value, json};

const ECHO: &str = "export const handler = async (event) => event;\n";

fn main_error(source: &str) -> Value {
    boot_error(&[("main.mjs", source)], "main.handler")
}

#[test]
fn boots_with_version_and_time() {
    let mut template = Template::start(&[("main.mjs", ECHO)], "main.handler");
    let message = template.message();
    assert_eq!(message["type"], "booted", "{message}");
    let version = message["runtime"].as_str().expect("text");
    assert!(version.split('.').count() == 3, "{message}");
    assert!(
        message["import_ms"].as_f64().expect("number") >= 0.0,
        "{message}"
    );
    assert_eq!(template.close().code(), Some(0));
}

/// It may be dumped as soon as it has said that it is up: what it was in the middle of would go on in every restore.
#[test]
fn when_it_says_that_it_is_up_all_of_its_memory_can_be_forked() {
    let template = boot(ECHO);
    let mappings = figures::mappings(template.pid()).expect("its mappings");
    let left_out = |mapping: &&Mapping| {
        let has = |wanted: &str| mapping.flags.iter().any(|flag| flag == wanted);
        has("dc") && !has("io")
    };
    assert_eq!(mappings.iter().filter(left_out).count(), 0);
    let mut files = figures::descriptors(template.pid()).expect("its descriptors");
    files.retain(|path| path.starts_with("/proc"));
    assert!(files.is_empty(), "{files:?}");
}

#[test]
fn modules_of_both_kinds_are_found() {
    let esm = "export const run = async () => import.meta.url.split('/').pop();\n";
    let cjs = "exports.run = async () => __filename.split('/').pop();\n";
    let cases = [
        (vec![("pkg/mod.mjs", esm)], "pkg/mod.run", "mod.mjs"),
        (vec![("mod.cjs", cjs)], "mod.run", "mod.cjs"),
        // Without a package.json the syntax decides.
        (vec![("mod.js", esm)], "mod.run", "mod.js"),
        (vec![("mod.js", cjs)], "mod.run", "mod.js"),
        (
            vec![("mod.js", esm), ("package.json", r#"{"type":"module"}"#)],
            "mod.run",
            "mod.js",
        ),
        (
            vec![(
                "mod.js",
                "module.exports = class { static api = { run() { return 'deep' } } }\n",
            )],
            "mod.api.run",
            "deep",
        ),
        (
            vec![
                (
                    "mod.mjs",
                    "import cjs, { two } from './other.cjs'; import { three } from 'dep';\nconst one = await Promise.resolve('one');\nexport const run = () => [one, two, cjs.two, three].join();\n",
                ),
                ("other.cjs", "exports.two = 'two';\n"),
                (
                    "node_modules/dep/package.json",
                    r#"{"name":"dep","exports":"./d.mjs"}"#,
                ),
                ("node_modules/dep/d.mjs", "export const three = 'three';\n"),
            ],
            "mod.run",
            "one,two,two,three",
        ),
    ];
    for (files, handler, expected) in cases {
        let mut template = Template::start(&files, handler);
        let message = template.message();
        assert_eq!(message["type"], "booted", "{handler}: {message}");
        assert_eq!(template.fork().call(&json!(null)), expected, "{files:?}");
    }
}

#[test]
fn a_syntax_error_shows_the_line() {
    for name in ["main.mjs", "main.cjs", "main.js"] {
        let source = "const x = 1;\nfunction handler( {\n}\n";
        let error = boot_error(&[(name, source)], "main.handler");
        assert_eq!(error["errorType"], "SyntaxError", "{name}");
        let stack = error["stackTrace"].to_string();
        assert!(
            stack.contains(&format!("{name}:")) && !stack.contains("/worker/"),
            "{name}: {error}"
        );
    }
}

#[test]
fn an_import_that_throws_shows_its_own_frames_only() {
    let error =
        main_error("function deep() {\n  throw new RangeError('too deep');\n}\n\ndeep();\n");
    assert_eq!(
        (&error["errorType"], &error["errorMessage"]),
        (&json!("RangeError"), &json!("too deep"))
    );
    let stack: Vec<String> = serde_json::from_value(error["stackTrace"].clone()).expect("strings");
    assert_eq!(stack.len(), 3, "{stack:?}");
    assert_eq!(stack[0], "RangeError: too deep");
    assert!(stack[1].contains("at deep (") && stack[1].contains("main.mjs:2:"));
    assert!(stack[2].contains("main.mjs:5:1"), "{stack:?}");
}

#[test]
fn every_import_error_has_its_type() {
    let cases = [
        ("process.exit(3);", "Runtime.ExitError"),
        ("throw 'text';", "string"),
        ("import 'no-such-module';", "Error"),
        (
            "Promise.reject(new TypeError('x')); export const handler = 1; await new Promise(setImmediate);",
            "TypeError",
        ),
        (
            "setTimeout(() => { throw new RangeError('x') }); await new Promise((r) => setTimeout(r, 1000));",
            "RangeError",
        ),
        ("await new Promise(() => {});", "Runtime.ImportModuleError"),
        ("export const x = 1;", "Runtime.HandlerNotFound"),
        ("export const handler = 3;", "Runtime.HandlerNotCallable"),
    ];
    for (source, expected) in cases {
        let error = main_error(source);
        assert_eq!(error["errorType"], expected, "{source}: {error}");
    }
    assert_eq!(
        boot_error(&[], "main.handler")["errorType"],
        "Runtime.ImportModuleError"
    );
    for handler in [
        "handler",
        "main.",
        ".handler",
        "a..b",
        "",
        "../main.handler",
    ] {
        assert_eq!(
            boot_error(&[("main.mjs", ECHO)], handler)["errorType"],
            "Runtime.MalformedHandlerName",
            "{handler}"
        );
    }
}

#[test]
fn an_endless_error_is_cut_to_a_datagram() {
    let error = main_error("throw new Error('\\x01'.repeat(10_000_000));");
    assert!(
        error.to_string().len() < 128 * 1024 && error["errorMessage"].to_string().contains("(cut)")
    );
    let error = main_error(
        "Error.stackTraceLimit = 5000; const f = (n) => { if (n === 0) throw new Error('deep'); f(n - 1); }; f(1000);",
    );
    let stack = error["stackTrace"].as_array().expect("array");
    assert!(
        stack.len() <= 101 && error["stackTrace"].to_string().contains("left out"),
        "{}",
        stack.len()
    );
}

#[test]
fn exits_and_signals_are_reported() {
    contract::check_exits(
        "export const handler = (code) => process.exit(code);\nprocess.on('exit', (code) => console.log('bye', code));\n",
    );
}

#[test]
fn a_fork_without_its_descriptors_fails_alone() {
    contract::check_wrong_descriptors(ECHO);
}

#[test]
fn what_the_import_left_running_does_no_harm() {
    let source = r#"
import { execFileSync, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { EventEmitter } from "node:events";
const made = execFileSync("echo", ["at import"], { encoding: "utf8" });
spawn("sleep", ["0.05"]).unref();
let read = 0;
readFile("/etc/hostname").then(() => { read += 1; });
let ticks = 0;
setInterval(() => { ticks += 1; }, 5);
export const handler = async () => {
  const before = ticks;
  await new Promise((resolve) => setTimeout(resolve, 30));
  const code = await new Promise((resolve) => spawn("sh", ["-c", "exit 5"]).on("exit", resolve));
  return [made, read, ticks > before, code];
};
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    for _ in 0..2 {
        assert_eq!(
            instance.call(&json!(null)),
            json!(["at import\n", 1, true, 5])
        );
    }
    instance.kill(Signal::KILL);
    assert_eq!(
        template.message(),
        json!({"type": "exited", "pid": instance.pid, "signal": 9})
    );
}

#[test]
fn a_closed_stdout_does_not_cost_a_channel() {
    let source = "import fs from 'node:fs';\nfor (const fd of [0, 1, 2]) fs.closeSync(fd);\nexport const handler = async () => { fs.writeSync(1, 'hi\\n'); };\n";
    let mut template = boot(source);
    assert_eq!(template.fork().invoke(&json!(null)).stdout, "hi\n");
}

#[test]
fn what_the_import_printed_belongs_to_the_template() {
    let mut template = boot(
        "import { execSync } from 'node:child_process';\nconsole.log('one');\nprocess.stdout.write('two');\nexecSync('echo three', { stdio: 'inherit' });\nexport const handler = async () => console.log('four');\n",
    );
    let reply = template.fork().invoke(&json!(null));
    assert_eq!(reply.stdout, "four\n");
    assert_eq!(template.drain_stdout(), "one\ntwothree\n");
}

const HOOKS: &str = r#"
const calls = [];
hooks.register_before_snapshot((what) => calls.push(what), "before 1");
hooks.registerBeforeSnapshot(async () => { await null; calls.push("before 2"); });
hooks.register_after_restore((what) => calls.push(what), "after 1");
hooks.registerAfterRestore(async () => { await new Promise(setImmediate); calls.push("after 2"); });
"#;

#[test]
fn hooks_run_around_the_fork() {
    let esm = format!(
        "import * as hooks from 'snapshot_restore_node';\n{HOOKS}export const handler = () => calls;\n"
    );
    let cjs = format!(
        "const hooks = require('snapshot_restore_node');\n{HOOKS}exports.handler = () => calls;\n"
    );
    for (name, source) in [("main.mjs", esm), ("main.cjs", cjs)] {
        let mut template = Template::start(&[(name, &source)], "main.handler");
        let message = template.message();
        assert_eq!(message["type"], "booted", "{message}");
        for _ in 0..2 {
            assert_eq!(
                template.fork().call(&json!(null)),
                json!(["before 2", "before 1", "after 1", "after 2"]),
                "{name}"
            );
        }
    }
}

#[test]
fn a_failing_hook_fails_the_boot_or_the_start() {
    for hook in [
        "() => { throw new RangeError('no') }",
        "async () => { throw new RangeError('no') }",
    ] {
        let before = format!(
            "import * as s from 'snapshot_restore_node';\ns.register_before_snapshot({hook});\nexport const handler = () => 1;\n"
        );
        assert_eq!(main_error(&before)["errorType"], "RangeError");
        let mut template = boot(&before.replace("before_snapshot", "after_restore"));
        let mut instance = template.fork_unready();
        let error = instance.wait_ready().expect_err("not ready");
        assert!(error.contains("RangeError"), "{error}");
        let report = template.message();
        assert_eq!(
            (&report["type"], &report["code"]),
            (&json!("exited"), &json!(1))
        );
    }
}

#[test]
fn siblings_share_no_randomness() {
    let source = r#"
import crypto, { randomUUID, randomInt, randomBytes } from "node:crypto";
import os from "node:os";
import fs from "node:fs";
import vm from "node:vm";
import path from "node:path";
const { random } = Math;
const wide = () => randomInt(2 ** 47);
const context = vm.createContext({});
vm.runInContext("Math.random()", context);
const other = vm.createContext();
// Everything that could keep something is used before the fork.
random(); Math.random(); randomUUID(); wide(); randomBytes(8); globalThis.crypto.randomUUID();
globalThis.crypto.getRandomValues(new Uint32Array(2)); crypto.generateKeyPairSync("ed25519");
export const handler = async () => ({
  "Math.random": Math.random(),
  "captured": random(),
  "vm": vm.runInNewContext("Math.random()"),
  "vm made before": vm.runInContext("Math.random()", context),
  "vm script": new vm.Script("Math.random()").runInNewContext(),
  "vms": new Set([context, other, vm.createContext(), vm.createContext()].map((made) =>
    vm.runInContext("Math.random()", made))).size + process.pid,
  "randomUUID": randomUUID(),
  "web randomUUID": globalThis.crypto.randomUUID(),
  "randomInt": wide(),
  "randomInt later": await new Promise((resolve, reject) =>
    randomInt(2 ** 47, (error, value) => (error ? reject(error) : resolve(value)))),
  "randomBytes": randomBytes(8).toString("hex"),
  "getRandomValues": [...globalThis.crypto.getRandomValues(new Uint32Array(2))],
  "key": crypto.generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "der" }).toString("hex"),
  "mkdtemp": fs.mkdtempSync(path.join(os.tmpdir(), "hearth-sibling-")),
  "process.pid": process.pid,
  "timeOrigin": performance.timeOrigin,
});
"#;
    let mut template = boot(source);
    let mut instances: Vec<_> = (0..20).map(|_| template.fork()).collect();
    let answers: Vec<Value> = instances
        .iter_mut()
        .map(|instance| instance.call(&json!(null)))
        .collect();
    for answer in &answers {
        std::fs::remove_dir(answer["mkdtemp"].as_str().expect("text")).expect("directory");
    }
    for name in answers[0].as_object().expect("object").keys() {
        let mut values: Vec<String> = answers
            .iter()
            .map(|answer| answer[name].to_string())
            .collect();
        values.sort();
        values.dedup();
        assert_eq!(values.len(), answers.len(), "{name}");
    }
    for (instance, answer) in instances.iter().zip(&answers) {
        assert_eq!(answer["process.pid"], instance.pid);
    }
}

#[test]
fn clocks_count_from_the_instances_start() {
    let source = r#"
const origin = performance.timeOrigin;
export const handler = () => ({
  older: performance.timeOrigin > origin,
  drift: Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 50,
  uptime: process.uptime() < 5 && process.uptime() >= 0,
  monotonic: process.hrtime.bigint() > 0n,
});
"#;
    let mut template = boot(source);
    let expected = json!({"older": true, "drift": true, "uptime": true, "monotonic": true});
    assert_eq!(template.fork().call(&json!(null)), expected);
}

#[test]
fn no_clock_runs_backwards_between_import_and_handler() {
    let source = r#"
// Longer than a fork takes to its first request.
await new Promise((resolve) => setTimeout(resolve, 300));
const imported = [performance.now(), process.uptime(), Number(process.hrtime.bigint()), Date.now()];
export const handler = () =>
  [performance.now(), process.uptime(), Number(process.hrtime.bigint()), Date.now()].map((now, n) => now >= imported[n]);
"#;
    let mut template = boot(source);
    for _ in 0..3 {
        let mut instance = template.fork();
        for _ in 0..2 {
            assert_eq!(instance.call(&json!(null)), json!([true, true, true, true]));
        }
    }
}

#[test]
fn the_template_ends_with_its_server() {
    let mut template = boot(ECHO);
    let instance = template.fork();
    assert_eq!(template.close().code(), Some(0));
    drop(instance);
}

#[test]
fn a_preforked_instance_runs_no_function_code_until_it_is_wanted() {
    let mut template = boot(
        "import * as hooks from 'snapshot_restore_node';\n\
         let calls = 0;\n\
         hooks.register_after_restore(() => { console.log('woken'); calls += 1; });\n\
         export const handler = () => [calls, process.pid, Math.random(), crypto.randomUUID()];\n",
    );
    let (mut preforked, mut other) = (template.prefork(), template.fork());
    template.assert_waiting(&[&preforked]);
    assert_eq!(preforked.drain_stdout(), "", "no hook has run");
    preforked.go();
    preforked.wait_ready().expect("ready");
    let (own, others) = (preforked.call(&json!(1)), other.call(&json!(1)));
    assert_eq!((&own[0], &others[0]), (&json!(1), &json!(1)));
    assert_eq!(own[1], preforked.pid);
    for value in [2, 3] {
        assert_ne!(own[value], others[value], "random state of its own");
    }
    assert_eq!(
        preforked.call(&json!(1))[0],
        1,
        "it serves as every instance does"
    );
}

#[test]
fn a_preforked_instance_that_is_not_wanted_ends_quietly() {
    let mut template = boot(ECHO);
    let mut preforked = template.prefork();
    preforked.wait_ready().expect("ready");
    drop(preforked);
    let news = template.message();
    assert_eq!(
        (&news["type"], &news["code"]),
        (&json!("exited"), &json!(0))
    );
}

#[test]
fn a_preforked_instance_without_hooks_is_ready_before_it_is_wanted() {
    let mut template = boot(
        "const imported = [performance.now(), process.uptime()];\n\
         let calls = 0;\n\
         export const handler = () => [\n\
         \x20 (calls += 1), process.pid, Math.random(), crypto.randomUUID(),\n\
         \x20 performance.now() - imported[0], process.uptime() - imported[1],\n\
         ];\n",
    );
    let (mut preforked, mut other) = (template.prefork(), template.fork());
    preforked.wait_ready().expect("ready");
    // Sent by a server that did not know yet.
    preforked.go();
    let waited = Duration::from_secs(3);
    std::thread::sleep(waited);
    let (own, others) = (preforked.call(&json!(1)), other.call(&json!(1)));
    assert_eq!((&own[0], &others[0]), (&json!(1), &json!(1)));
    assert_eq!(own[1], preforked.pid);
    for value in [2, 3] {
        assert_ne!(own[value], others[value], "random state of its own");
    }
    let [now, uptime] = [4, 5].map(|index| own[index].as_f64().expect("a number"));
    let waited = waited.as_secs_f64();
    assert!(now < waited * 1000.0, "{now} ms by performance.now()");
    assert!(uptime < waited, "{uptime} s by process.uptime()");
    assert_eq!(preforked.call(&json!(1))[0], 2);
}

#[test]
fn a_preforked_instance_that_was_dropped_before_it_began_ends_quietly() {
    let mut template = boot(ECHO);
    template.kill(Signal::STOP);
    drop(template.prefork());
    template.kill(Signal::CONT);
    let news = template.message();
    assert_eq!(
        (&news["type"], &news["code"]),
        (&json!("exited"), &json!(0)),
        "{}",
        template.drain_stderr()
    );
}
