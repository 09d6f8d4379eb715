//! The template: boots, reports import errors of every kind, forks, reaps, ends.
#![deny(unsafe_code)]

use hearth_testkit::worker::{Template, boot, boot_error, contract};
use rustix::process::Signal;
use serde_json::{Value, json};

const ECHO: &str = "def handler(event, context):\n    return event\n";

fn main_error(source: &str) -> Value {
    boot_error(&[("main.py", source)], "main.handler")
}

#[test]
fn boots_with_version_and_time() {
    let mut template = Template::start(&[("main.py", ECHO)], "main.handler");
    let message = template.message();
    assert_eq!(message["type"], "booted");
    assert!(
        message["runtime"].as_str().expect("text").starts_with("3."),
        "{message}"
    );
    assert!(
        message["import_ms"].as_f64().expect("number") >= 0.0,
        "{message}"
    );
    assert_eq!(template.close().code(), Some(0));
}

#[test]
fn the_module_may_be_dotted_or_a_path() {
    for handler in ["pkg.mod.run", "pkg/mod.run"] {
        let files = [(
            "pkg/mod.py",
            "def run(event, context):\n    return __name__\n",
        )];
        let mut template = Template::start(&files, handler);
        assert_eq!(template.message()["type"], "booted");
        assert_eq!(template.fork().call(&json!(null)), "pkg.mod");
    }
}

#[test]
fn a_syntax_error_shows_the_line() {
    let error = main_error("x = 1\ndef handler(:\n    pass\n");
    assert_eq!(error["errorType"], "SyntaxError");
    let stack = error["stackTrace"].to_string();
    assert!(
        stack.contains("main.py") && stack.contains("line 2") && stack.contains("def handler(:"),
        "{error}"
    );
}

#[test]
fn an_import_that_raises_shows_its_own_frames_only() {
    let error = main_error("def deep():\n    return 1 / 0\n\ndeep()\n");
    assert_eq!(
        (&error["errorType"], &error["errorMessage"]),
        (&json!("ZeroDivisionError"), &json!("division by zero"))
    );
    let stack: Vec<String> = serde_json::from_value(error["stackTrace"].clone()).expect("strings");
    assert_eq!(stack.len(), 2, "{stack:?}");
    assert!(
        stack[0].contains("main.py\", line 4, in <module>\n    deep()"),
        "{stack:?}"
    );
    assert!(
        stack[1].contains("main.py\", line 2, in deep\n    return 1 / 0"),
        "{stack:?}"
    );
}

#[test]
fn every_import_error_has_its_type() {
    let cases = [
        ("import sys\nsys.exit(3)\n", "SystemExit"),
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("import no_such_module\n", "ModuleNotFoundError"),
        ("x = 1\n", "Runtime.HandlerNotFound"),
        ("handler = 3\n", "Runtime.HandlerNotCallable"),
    ];
    for (source, expected) in cases {
        assert_eq!(main_error(source)["errorType"], expected, "{source}");
    }
    assert_eq!(
        boot_error(&[], "main.handler")["errorType"],
        "ModuleNotFoundError"
    );
    for handler in ["handler", "main.", ".handler", "a..b", ""] {
        assert_eq!(
            boot_error(&[("main.py", ECHO)], handler)["errorType"],
            "Runtime.MalformedHandlerName",
            "{handler}"
        );
    }
}

#[test]
fn an_endless_error_is_cut_to_a_datagram() {
    let error =
        main_error("import sys\nsys.setrecursionlimit(5000)\ndef f(n):\n    f(n + 1)\nf(0)\n");
    assert_eq!(error["errorType"], "RecursionError");
    let stack = error["stackTrace"].as_array().expect("array");
    assert!(
        stack.len() <= 101 && error["stackTrace"].to_string().contains("frames left out"),
        "{}",
        stack.len()
    );
    let error = main_error("raise ValueError('\\x01' * 10_000_000)\n");
    assert!(
        error.to_string().len() < 64 * 1024 && error["errorMessage"].to_string().contains("(cut)")
    );
}

#[test]
fn exits_and_signals_are_reported() {
    contract::check_exits("import os\ndef handler(event, context):\n    os._exit(event)\n");
}

#[test]
fn a_fork_without_its_descriptors_fails_alone() {
    contract::check_wrong_descriptors(ECHO);
}

#[test]
fn subprocesses_and_threads_of_the_import_do_no_harm() {
    let source = r#"
import subprocess, threading, time
made = subprocess.run(["echo", "at import"], capture_output=True, text=True).stdout
lingering = subprocess.Popen(["sleep", "0.05"])
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
def handler(event, context):
    return [made, subprocess.run(["sh", "-c", "exit 5"]).returncode]
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    assert_eq!(instance.call(&json!(null)), json!(["at import\n", 5]));
    // The import's own child ends unreported, so that only the instance runs; its end is still seen, thread or not.
    template.wait_for_children(1);
    instance.kill(Signal::TERM);
    assert_eq!(
        template.message(),
        json!({"type": "exited", "pid": instance.pid, "signal": 15})
    );
}

#[test]
fn a_closed_stdout_does_not_cost_a_channel() {
    let source = "import os\nfor fd in 0, 1, 2:\n    os.close(fd)\ndef handler(event, context):\n    os.write(1, b'hi\\n')\n";
    let mut template = boot(source);
    assert_eq!(template.fork().invoke(&json!(null)).stdout, "hi\n");
}

#[test]
fn what_the_import_printed_belongs_to_the_template() {
    let mut template = boot(
        "import os\nprint('one')\nprint('two', end='')\nos.system('echo three')\ndef handler(e, c):\n    print('four')\n",
    );
    let reply = template.fork().invoke(&json!(null));
    assert_eq!(reply.stdout, "four\n");
    assert_eq!(template.drain_stdout().replace("two", ""), "one\nthree\n");
}

#[test]
fn what_c_code_printed_at_import_is_printed_once() {
    let mut template = boot(
        "import ctypes\nctypes.CDLL(None).printf(b'imported\\n')\ndef handler(e, c):\n    print('called')\n",
    );
    for _ in 0..2 {
        let reply = template.fork().invoke(&json!(null));
        assert_eq!(reply.stdout, "called\n");
    }
    assert_eq!(template.drain_stdout(), "imported\n");
}

#[test]
fn hooks_run_around_the_fork() {
    let source = r#"
from snapshot_restore_py import register_before_snapshot, register_after_restore
calls = []
register_before_snapshot(calls.append, "before 1")
register_before_snapshot(calls.append, "before 2")
register_after_restore(calls.append, "after 1")
@register_after_restore
def second():
    calls.append("after 2")
def handler(event, context):
    return calls
"#;
    let mut template = boot(source);
    for _ in 0..2 {
        assert_eq!(
            template.fork().call(&json!(null)),
            json!(["before 2", "before 1", "after 1", "after 2"])
        );
    }
}

#[test]
fn a_failing_hook_fails_the_boot_or_the_start() {
    let before = "import snapshot_restore_py as s\ns.register_before_snapshot(lambda: 1 / 0)\ndef handler(e, c): pass\n";
    assert_eq!(main_error(before)["errorType"], "ZeroDivisionError");
    let mut template = boot(&before.replace("before_snapshot", "after_restore"));
    let mut instance = template.fork_unready();
    assert!(
        instance
            .wait_ready()
            .expect_err("not ready")
            .contains("ZeroDivisionError")
    );
    let report = template.message();
    assert_eq!(
        (&report["type"], &report["code"]),
        (&json!("exited"), &json!(1))
    );
}

#[test]
fn the_template_ends_with_its_server() {
    let mut template = boot(ECHO);
    let instance = template.fork();
    assert_eq!(template.close().code(), Some(0));
    drop(instance);
}

/// Registers at-fork handlers of its own beside those of the library, and can be asked what ran and whether the library's
/// locks are free.
const HANDLERS: &str = "
import os
ran = []
os.register_at_fork(before=lambda: ran.append('before 1'), after_in_child=lambda: ran.append('child 1'))
os.register_at_fork(after_in_parent=lambda: ran.append('parent'))
os.register_at_fork(after_in_child=lambda: 1 / 0)
import concurrent.futures, logging, random, threading
os.register_at_fork(before=lambda: ran.append('before 2'), after_in_child=lambda: ran.append('child 2'))

def handler(event, context):
    here = list(ran)
    ran.clear()
    if event == 'fork':
        r, w = os.pipe()
        if os.fork() == 0:
            os.write(w, ','.join(ran).encode())
            os._exit(0)
        os.close(w)
        here = os.read(r, 1000).decode().split(',')
        os.wait()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert list(pool.map(abs, [-1, -2])) == [1, 2]
    thread = threading.Thread(target=logging.getLogger('x').warning, args=('from a thread',))
    thread.start()
    thread.join()
    assert threading.current_thread() is threading.main_thread() and threading.active_count() == 1
    return here
";

#[test]
fn at_fork_handlers_of_the_function_run_as_the_interpreter_runs_them() {
    for extra in [
        "",
        // With a further thread, the interpreter itself runs all of them.
        "\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n",
    ] {
        let mut template = boot(&format!("{HANDLERS}{extra}"));
        let mut first = template.fork();
        assert_eq!(
            first.call(&json!(null)),
            json!(["before 2", "before 1", "child 1", "child 2"]),
            "{extra}"
        );
        // What the function forks itself runs them all the same.
        assert_eq!(
            first.call(&json!("fork")),
            json!(["before 2", "before 1", "child 1", "child 2"]),
            "{extra}"
        );
        let mut second = template.fork();
        assert_eq!(
            second.call(&json!(null)),
            json!([
                "before 2", "before 1", "parent", "before 2", "before 1", "child 1", "child 2"
            ]),
            "{extra}"
        );
    }
}

#[test]
fn a_preforked_instance_runs_no_function_code_until_it_is_wanted() {
    let mut template = boot(
        "import random, snapshot_restore_py\n\
         calls = []\n\
         @snapshot_restore_py.register_after_restore\n\
         def woken(): print('woken'); calls.append(1)\n\
         def handler(event, context): return [len(calls), random.random()]\n",
    );
    let (mut preforked, mut other) = (template.prefork(), template.fork());
    template.assert_waiting(&[&preforked]);
    assert_eq!(preforked.drain_stdout(), "", "no hook has run");
    preforked.go();
    preforked.wait_ready().expect("ready");
    let (preforked, other) = (preforked.call(&json!(1)), other.call(&json!(1)));
    assert_eq!((&preforked[0], &other[0]), (&json!(1), &json!(1)));
    assert_ne!(preforked[1], other[1], "random state of its own");
}

/// Of a pre-forked instance that has a hook to run, which waits for GO, and of one that has none, which waits for a request.
const WITH_AND_WITHOUT_HOOK: [&str; 2] = [
    "import snapshot_restore_py\n\
     @snapshot_restore_py.register_after_restore\n\
     def woken(): print('woken')\n\
     def handler(event, context): return event\n",
    "def handler(event, context): return event\n",
];

#[test]
fn a_preforked_instance_that_is_not_wanted_ends_quietly() {
    for source in WITH_AND_WITHOUT_HOOK {
        let mut template = boot(source);
        let preforked = template.prefork();
        preforked.wait_for_word();
        drop(preforked);
        let news = template.message();
        assert_eq!(
            (&news["type"], &news["code"]),
            (&json!("exited"), &json!(0)),
            "{source}"
        );
    }
}

#[test]
fn a_preforked_instance_without_hooks_is_ready_before_it_is_wanted() {
    let mut template = boot(
        "import random, uuid\n\
         calls = []\n\
         def handler(event, context):\n\
         \x20   calls.append(1)\n\
         \x20   return [len(calls), random.random(), str(uuid.uuid1())]\n",
    );
    let (mut preforked, mut other) = (template.prefork(), template.fork());
    preforked.wait_ready().expect("ready");
    // Sent by a server that did not know yet.
    preforked.go();
    let (own, others) = (preforked.call(&json!(1)), other.call(&json!(1)));
    assert_eq!((&own[0], &others[0]), (&json!(1), &json!(1)));
    for value in [1, 2] {
        assert_ne!(own[value], others[value], "random state of its own");
    }
    assert_eq!(preforked.call(&json!(1))[0], json!(2));
}

#[test]
fn a_preforked_instance_that_was_dropped_before_it_began_ends_quietly() {
    let mut template = boot("def handler(event, context): return event\n");
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

/// Fills some memory of each kind, moves it, and says what it finds afterwards.
const COMPACTED: &str = r#"
import hashlib, mmap, os
import hearth_runtime

objects = [str(number) * 3 for number in range(100_000)]
block = bytearray(os.urandom(4 << 20))
left_out = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
left_out.madvise(mmap.MADV_DONTFORK)
left_out.write(bytes(block[: 1 << 20]))

def digest():
    return hashlib.sha256("".join(objects).encode() + block).hexdigest()

def left_out_mappings():
    return sum(" dc" in line for line in open("/proc/self/smaps") if line.startswith("VmFlags"))

def addresses():
    return [id(objects), id(objects[50_000]), id(block)]

before = (digest(), left_out_mappings(), addresses())
moved = hearth_runtime.compact_memory()
after = (digest(), left_out_mappings(), addresses())
same_in_the_one_left_out = left_out[:] == block[: 1 << 20]

def handler(event, context):
    objects.append("one more")
    return {
        "moved": moved,
        "same": before == after and same_in_the_one_left_out,
        "count": len(objects),
    }
"#;

#[test]
fn compacting_moves_memory_and_changes_nothing_of_it() {
    let mut template = Template::start(&[("main.py", COMPACTED)], "main.handler");
    assert_eq!(template.message()["type"], "booted");
    for _ in 0..2 {
        let mut instance = template.fork();
        let answer = instance.call(&json!(null));
        assert_eq!(answer["same"], true, "{answer}");
        assert_eq!(answer["count"], 100_001, "instances share no writes");
        if huge_pages_are_to_be_had() {
            let moved = answer["moved"].as_u64().expect("a number");
            assert!(moved >= 4 << 20, "{moved} bytes");
        }
        instance.kill(Signal::KILL);
        assert_eq!(template.message()["signal"], 9);
    }
    assert_eq!(template.close().code(), Some(0));
}

#[test]
fn a_preforked_instance_has_compacted_memory() {
    const SOURCE: &str = r#"
data = [str(number) for number in range(100_000)]

def handler(event, context):
    flags = [line for line in open("/proc/self/smaps") if line.startswith("VmFlags")]
    return {"small_from_here": any(" nh" in line for line in flags), "sum": sum(map(int, data))}
"#;
    let mut template = Template::start(&[("main.py", SOURCE)], "main.handler");
    assert_eq!(template.message()["type"], "booted");
    let call = |mut instance: hearth_testkit::worker::Instance| {
        let answer = instance.call(&json!(null));
        assert_eq!(answer["sum"], 4_999_950_000_u64);
        instance.kill(Signal::KILL);
        answer["small_from_here"].clone()
    };
    let wanted = template.fork();
    assert_eq!(call(wanted), false, "a start does not wait for it");
    assert_eq!(template.message()["signal"], 9);
    let mut preforked = template.prefork();
    // A pre-forked instance that is wanted before the template has looked is a start like any other.
    template.wait_for_children(1);
    preforked.go();
    preforked.wait_ready().expect("ready");
    assert_eq!(call(preforked), huge_pages_are_to_be_had());
    assert_eq!(template.message()["signal"], 9);
    assert_eq!(template.close().code(), Some(0));
}

/// Whether the kernel gives huge pages to who asks for them.
fn huge_pages_are_to_be_had() -> bool {
    std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
        .is_ok_and(|modes| !modes.contains("[never]"))
}
