//! Where Node cannot be forked: instances that have booted ahead of time.
#![deny(unsafe_code)]

use std::collections::HashSet;

use hearth_testkit::worker::Template;
use rustix::process::Signal;
use serde_json::json;

const SOURCE: &str = "let calls = 0;\nexport const handler = async (event) => [event, (calls += 1), Math.random()];\n";

fn preforked(source: &str) -> Template {
    let mut template =
        Template::start_mode(&[("main.mjs", source)], "main.handler", Some("--prefork"));
    let message = template.message();
    assert_eq!(message["type"], "booted", "{message}");
    template
}

#[test]
fn instances_are_processes_that_booted_by_themselves() {
    let mut template = preforked(SOURCE);
    let mut seen = HashSet::new();
    // Faster than they can boot, so that some are given their work while they import.
    let mut instances: Vec<_> = (0..5).map(|_| template.fork_unready()).collect();
    for instance in &mut instances {
        instance.wait_ready().expect("ready");
        let first = instance.call(&json!("a"));
        assert_eq!((&first[0], &first[1]), (&json!("a"), &json!(1)));
        assert_eq!(instance.call(&json!(1))[1], 2);
        seen.insert(first[2].to_string());
    }
    assert_eq!(seen.len(), 5);
}

#[test]
fn one_after_the_other_none_is_lost() {
    let mut template = preforked(SOURCE);
    for _ in 0..10 {
        let mut instance = template.fork();
        instance.call(&json!(null));
        instance.kill(Signal::KILL);
        assert_eq!(
            template.message(),
            json!({"type": "exited", "pid": instance.pid, "signal": 9})
        );
    }
}

#[test]
fn an_import_error_is_passed_on() {
    let files = [("main.mjs", "throw new RangeError('no');\n")];
    let mut template = Template::start_mode(&files, "main.handler", Some("--prefork"));
    let message = template.message();
    assert_eq!(message["type"], "import_error", "{message}");
    assert_eq!(message["error"]["errorType"], "RangeError");
    template.wait();
}

#[test]
fn they_end_with_their_server() {
    let mut template = preforked(SOURCE);
    let instance = template.fork();
    assert_eq!(template.close().code(), Some(0));
    drop(instance);
}
