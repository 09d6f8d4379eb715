//! Names: asked of Hearth's resolver inside a sandbox, and of the DNS server itself between two plain namespaces.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use hearth_testkit::namespaces::within;

use super::world::{DOMAIN, NAMES, NEAR, World, question};
use crate::results::{Document, Samples};
use crate::scale::Scale;

const CATEGORY: &str = "a name resolved";
/// Within what a sandbox may ask for at once (`server/src/network/resolver/ask.rs`), of the DNS server and at all.
const UNKNOWN: usize = 90;
const KNOWN: usize = 250;
/// Longer than the resolver takes for any answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Measures names that nobody has asked for before, and one that was.
pub(super) fn run(
    world: &World,
    sandbox: &Path,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    let resolver = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), NAMES);
    let (unknown, known) = (scale.pick(UNKNOWN, 3), scale.pick(KNOWN, 3));
    let each: Vec<_> = (0..unknown).map(|n| format!("n{n}.{DOMAIN}")).collect();
    let same = vec![each[0].clone(); known];
    let plain = world.plain.path();
    for (name, namespace, server, asked) in [
        (
            "the DNS server, between two plain namespaces",
            plain.as_path(),
            SocketAddr::new(NEAR, NAMES),
            &each,
        ),
        (
            "Hearth's resolver, name not known: it asks that server",
            sandbox,
            resolver,
            &each,
        ),
        ("Hearth's resolver, name known", sandbox, resolver, &same),
    ] {
        let samples = within(namespace, || ask(server, asked))?;
        document.add(CATEGORY, name, samples);
    }
    Ok(())
}

fn ask(server: SocketAddr, names: &[String]) -> io::Result<Samples> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.connect(server)?;
    let mut samples = Samples::default();
    let mut answer = [0; 1500];
    for (id, name) in names.iter().enumerate() {
        let question = question(id as u16, name);
        let begun = Instant::now();
        socket.send(&question)?;
        let length = socket.recv(&mut answer)?;
        samples.push(begun.elapsed());
        // The same number, no error, one address.
        let is_good = length > question.len()
            && answer[..2] == question[..2]
            && answer[3] & 15 == 0
            && answer[7] == 1;
        if !is_good {
            return Err(io::Error::other(format!("{name} was not resolved")));
        }
    }
    Ok(samples)
}
