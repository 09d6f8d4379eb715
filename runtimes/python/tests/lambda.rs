//! What functions written for Lambda rely on: the root logger, and a layer's directories.
#![deny(unsafe_code)]

use hearth_testkit::worker::{Template, boot};
use serde_json::{Value, json};

/// The fields of a line that Lambda's root handler writes, but for its time, whose form is checked.
fn fields(line: &str) -> (&str, &str, &str) {
    let parts: Vec<&str> = line.splitn(4, '\t').collect();
    let [level, time, id, message] = parts[..] else {
        panic!("not four fields: {line:?}");
    };
    let form: String = time
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert_eq!(form, "0000-00-00T00:00:00.000Z", "{line}");
    (level, id, message)
}

#[test]
fn the_root_logger_writes_as_on_lambda() {
    let source = r#"
import logging
logging.warning("at import")
logging.getLogger().setLevel(logging.INFO)
def handler(event, context):
    logging.debug("unseen")
    logging.info("hello %s", event)
    logging.getLogger("library").error("two\nlines")
    return context.aws_request_id
"#;
    let mut template = boot(source);
    let reply = template.fork().invoke(&json!("you"));
    let hearth_testkit::worker::Answer::Result(Value::String(id)) = &reply.answer else {
        panic!("{reply:?}");
    };
    let lines: Vec<&str> = reply.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{reply:?}");
    assert_eq!(fields(lines[0]), ("[INFO]", id.as_str(), "hello you"));
    assert_eq!(fields(lines[1]), ("[ERROR]", id.as_str(), "two"));
    assert_eq!(lines[2], "lines");
    assert_eq!(reply.stderr, "");
    let imported = template.drain_stdout();
    assert_eq!(fields(imported.trim_end()), ("[WARNING]", "", "at import"));
}

#[test]
fn a_logger_that_is_first_used_in_the_handler_writes_too() {
    let source = "def handler(event, context):\n    import logging\n    logging.warning('late')\n";
    let mut template = boot(source);
    let reply = template.fork().invoke(&json!(null));
    assert_eq!(fields(reply.stdout.trim_end()).2, "late");
}

#[test]
fn basic_config_does_nothing_unless_it_is_forced() {
    let source = r#"
import io, logging
mine = io.StringIO()
logging.basicConfig(level="INFO", stream=mine, format="mine %(message)s")
def handler(event, context):
    if event:
        logging.basicConfig(level="INFO", stream=mine, format="mine %(message)s", force=True)
    logging.info("said")
    logging.warning("warned")
    return mine.getvalue()
"#;
    let mut template = boot(source);
    let reply = template.fork().invoke(&json!(false));
    assert_eq!(
        reply.answer,
        hearth_testkit::worker::Answer::Result(json!(""))
    );
    let lines: Vec<_> = reply.stdout.lines().map(fields).collect();
    assert_eq!(lines.len(), 1, "{reply:?}");
    assert_eq!((lines[0].0, lines[0].2), ("[WARNING]", "warned"));
    let reply = template.fork().invoke(&json!(true));
    let expected = json!("mine said\nmine warned\n");
    assert_eq!(
        reply.answer,
        hearth_testkit::worker::Answer::Result(expected)
    );
    assert_eq!(reply.stdout, "");
}

#[test]
fn what_the_function_makes_of_its_streams_costs_no_log_line() {
    let source = r#"
import io, logging, sys
def handler(event, context):
    if event:
        sys.stdout.close()
    else:
        sys.stdout = io.StringIO()
    logging.warning("seen")
"#;
    for event in [json!(true), json!(false)] {
        let reply = boot(source).fork().invoke(&event);
        assert_eq!(fields(reply.stdout.trim_end()).2, "seen", "{event}");
    }
}

#[test]
fn logging_shows_no_trace_of_how_it_was_hooked() {
    let source = r#"
import sys
before = [type(finder).__module__ for finder in sys.meta_path]
import logging, importlib
def handler(event, context):
    after = [type(finder).__module__ for finder in sys.meta_path]
    importlib.reload(logging)
    return [before, after, type(logging.__loader__).__name__, type(logging.__spec__.loader).__name__]
"#;
    let answer = boot(source).fork().call(&json!(null));
    let ours = |list: &Value| list.to_string().contains("hearth_worker");
    assert!(ours(&answer[0]) && !ours(&answer[1]), "{answer}");
    assert_eq!(answer[2], "SourceFileLoader");
    assert_eq!(answer[3], "SourceFileLoader");
}

#[test]
fn a_layers_modules_are_found_before_those_of_the_system() {
    let main = "
import sys, plain, packed, queue
def handler(event, context):
    return [plain.WHERE, packed.WHERE, hasattr(queue, 'Queue')]
";
    let version = boot("import sys\ndef handler(e, c): return '%d.%d' % sys.version_info[:2]\n")
        .fork()
        .call(&json!(null));
    let site = format!(
        "python/lib/python{}/site-packages/packed.py",
        version.as_str().expect("text")
    );
    let files = [
        ("main.py", main),
        ("python/plain.py", "WHERE = 'layer'\n"),
        ("python/packed.py", "WHERE = 'layer'\n"),
        (site.as_str(), "WHERE = 'site'\n"),
    ];
    let mut template = Template::start(&files, "main.handler");
    let booted = template.message();
    assert_eq!(booted["type"], "booted", "{booted}");
    assert_eq!(
        template.fork().call(&json!(null)),
        json!(["layer", "site", true])
    );
}

#[test]
fn a_package_that_is_called_python_is_no_layer() {
    let handler =
        "import queue\ndef handler(event, context):\n    return hasattr(queue, 'Queue')\n";
    let cases: [(&[(&str, &str)], &str); 2] = [
        (
            &[
                ("main.py", handler),
                ("python/__init__.py", ""),
                ("python/queue.py", ""),
            ],
            "main.handler",
        ),
        (
            &[("python/main.py", handler), ("python/queue.py", "")],
            "python.main.handler",
        ),
    ];
    for (files, setting) in cases {
        let mut template = Template::start(files, setting);
        assert_eq!(template.message()["type"], "booted", "{setting}");
        assert_eq!(template.fork().call(&json!(null)), true, "{setting}");
    }
}
