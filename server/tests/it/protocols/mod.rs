//! Ports whose protocols the server understands, with the clients that Debian has.

mod bridge;
mod broker;
mod coap;
mod mqtt;

use std::process::Command;
use std::time::Duration;

/// Longer than anything takes.
const LIMIT: Duration = Duration::from_secs(20);

/// What a program printed, as text; it has succeeded.
fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned() + &said
}
