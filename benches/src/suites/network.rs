//! The way out: what a connection, a stream and a name cost through a policy, what a secret costs a request, and what a policy
//! costs functions that use none of it. All against the same without, in turns.

mod brokered;
mod functions;
mod https;
mod names;
mod path;
mod world;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use hearth_testkit::wait::poll;
use serde_json::{Value, json};

pub use self::brokered::{KEPT, MORE, NEW};
pub use self::functions::{FIRST, NONE, RESTORED, WARM, WITH};
pub use self::path::{CONNECTION, POLICY, TWO_PLAIN, throughput};
use self::world::{DOMAIN, PUBLIC, World};
use crate::processes::Workers;
use crate::results::Document;
use crate::scale::Scale;
use crate::server::{Runtime, Server};

/// How long the sandbox of a function that was just deployed may take to be seen.
const SEEN: Duration = Duration::from_secs(10);

/// Measures all of it in a small internet of its own.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let world = World::make().context("network namespaces for the measurement")?;
    // On a thread of its own: those of the other suites stay where they are.
    std::thread::scope(|scope| {
        let measured = scope.spawn(|| -> anyhow::Result<()> {
            world.host.enter()?;
            in_world(&world, scale, document)
        });
        let measured = measured.join();
        measured.map_err(|_| anyhow::anyhow!("the measurement panicked"))?
    })
}

fn in_world(world: &World, scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let resolver = PUBLIC.to_string();
    let dir = tempfile::tempdir()?;
    let trust = dir.path().join("roots.pem");
    std::fs::write(&trust, &world.authority)?;
    let server = Server::start(&[
        ("HEARTH_NETWORK_RESOLVERS", &resolver),
        ("SSL_CERT_FILE", &trust.to_string_lossy()),
    ])?;
    let lacking = [
        server.runtime(Runtime::Python)?,
        server.capability("network_outbound")?,
    ];
    if let Some(reason) = lacking.into_iter().find_map(Result::err) {
        document.skip("the way out", reason);
        return Ok(());
    }
    let python = Runtime::Python;
    server.deploy("reaches", python, python.echo(), &with_policy())?;
    let sandbox = namespace_of(&server)?;
    path::run(world, &sandbox, scale, document)?;
    names::run(world, &sandbox, scale, document)?;
    server.delete("reaches")?;
    brokered::run(world, &server, scale, document)?;
    functions::run(&server, scale, document)
}

/// Settings of a function with every kind of rule, and more connections a second than are measured.
fn with_policy() -> Value {
    let allow = [
        format!("{PUBLIC}:*"),
        format!("*.{DOMAIN}"),
        "198.51.100.0/24:5432".to_owned(),
        "[2001:db8::]/32:53/udp".to_owned(),
    ];
    let limits = json!({
        "connections": 200_000,
        "connections_per_second": 200_000,
        "bytes_per_second": 0,
    });
    json!({ "network": { "allow": allow, "limits": limits } })
}

/// The network namespace of the sandbox that has an interface.
fn namespace_of(server: &Server) -> anyhow::Result<PathBuf> {
    let found = poll(SEEN, SEEN / 500, || {
        let templates = Workers::of(server.pid()).templates.into_iter();
        let mut with_interface = templates.filter(|process| {
            let devices = std::fs::read_to_string(format!("/proc/{}/net/dev", process.pid));
            devices.is_ok_and(|devices| devices.contains("eth0:"))
        });
        with_interface.next()
    });
    let template = found.context("no sandbox with an interface")?;
    Ok(format!("/proc/{}/ns/net", template.pid).into())
}
