//! Runs the unit tests of the JavaScript half with the interpreter that functions run on.
#![deny(unsafe_code)]

use std::path::Path;
use std::process::Command;

#[test]
fn the_javascript_suite_passes() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/javascript");
    let output = Command::new(hearth_testkit::worker::language::language().program())
        .arg("--test")
        .arg(&suite)
        .output()
        .expect("node");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
