//! Runs the unit tests of the Python half with the interpreter that functions run on.
#![deny(unsafe_code)]

#[path = "../../worker/tests/harness/mod.rs"]
mod harness;

use std::path::Path;
use std::process::Command;

#[test]
fn the_python_suite_passes() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    let output = Command::new(harness::language::LANGUAGE.program())
        .args(["-B", "-m", "unittest", "discover", "-s"])
        .arg(&suite)
        .env("PYTHONPATH", harness::runtime_dir())
        .output()
        .expect("python3");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
