//! A client that a tool makes from the description, used as its users would: what the tool cannot read, nobody can.

use std::path::Path;
use std::process::Command;

use crate::support::{Server, TOKEN};

/// Where set-up puts the generator and what its clients import.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.tools/client");
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/use.py");

#[tokio::test]
async fn a_generated_client_works() {
    assert!(
        Path::new(TOOLS).is_dir(),
        "the generator is not installed: run scripts/setup.sh test"
    );
    let server = Server::start();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run = Command::new("/usr/bin/python3")
        .arg("-B")
        .args([PROGRAM, &server.url, TOKEN])
        .env("PYTHONPATH", TOOLS)
        .current_dir(dir.path())
        .output()
        .expect("python3");
    assert!(
        run.status.success(),
        "{}{}",
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr)
    );
}
