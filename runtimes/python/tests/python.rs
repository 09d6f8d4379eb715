//! Runs the unit tests of the Python half with the interpreter that functions run on.
#![deny(unsafe_code)]

use std::path::Path;
use std::process::Command;

#[test]
fn the_python_suite_passes() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    let output = Command::new(hearth_testkit::worker::language::language().program())
        .args(["-B", "-m", "unittest", "discover", "-s"])
        .arg(&suite)
        .env("PYTHONPATH", hearth_testkit::worker::runtime_dir())
        .output()
        .expect("python3");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
