//! Requests over a veth to whose end the ingress is attached, and not, in turns.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use hearth_ebpf::limits::Limits;
use hearth_ebpf::{Capacity, Floor, Ingress, Maps, Mode, Wanted};
use hearth_testkit::namespaces::Namespace;

use crate::client::request;
use crate::load;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::suites::pair::Pair;

/// What the report calls a mode's row.
pub fn with(mode: Mode) -> &'static str {
    match mode {
        Mode::Native => "ingress in the driver",
        Mode::Generic => "ingress in the stack",
    }
}

/// Without it.
pub const WITHOUT: &str = "without";
/// With a program in the same place that does nothing: a veth that has one in its driver receives in another way, and one that has
/// one in the stack copies.
pub const FLOOR: &str = "a program that does nothing";
/// Connections at a time.
pub const CONNECTIONS: [usize; 2] = [1, 16];

/// What the report calls the requests of so many connections, with the ingress and without.
pub fn category(connections: usize, mode: Mode) -> String {
    let plural = if connections == 1 { "" } else { "s" };
    format!(
        "HTTP over a veth, {connections} connection{plural}, {}",
        with(mode)
    )
}

/// Where the server listens.
pub(super) const HOST: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 7_000);
/// Rounds, and how long each of the ways has in one.
const ROUNDS: usize = 20;
const TURN: Duration = Duration::from_millis(300);
const QUICK_TURN: Duration = Duration::from_millis(20);

/// Measures the ways in turns.
pub(super) fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let (host, client) = world().context("network namespaces for the measurement")?;
    host.within(|| serve(HOST))?;
    let floor = Floor::load()?;
    let mut ingress = Ingress::load(Capacity::default())?;
    let mut maps = Maps::new(ingress.descriptors()?)?;
    maps.functions.add(1, Limits::default())?;
    maps.ports.give_tcp(HOST.port(), 1, false)?;
    let request = request("GET", "/", b"");
    let turn = scale.pick(TURN, QUICK_TURN);
    for connections in CONNECTIONS {
        let measure = || -> anyhow::Result<Samples> {
            let observed = client.within(|| Ok(load::drive(HOST, &request, connections, turn)))?;
            Ok(observed?.samples)
        };
        let mut pairs =
            [Mode::Native, Mode::Generic].map(|mode| (mode, Pair::default(), Pair::default()));
        for _ in 0..scale.pick(ROUNDS, 1) {
            for (mode, pair, beside) in &mut pairs {
                let without = measure()?;
                let attached = host.within(|| {
                    let attached = floor.attach("h0", *mode);
                    attached.map_err(io::Error::other)
                })?;
                let nothing = measure();
                drop(attached);
                host.within(|| {
                    let attached = ingress.attach("h0", Wanted::Only(*mode));
                    attached.map(drop).map_err(io::Error::other)
                })?;
                let with = measure();
                ingress.detach("h0");
                let with = with?;
                beside.add(&[nothing?, with.clone()]);
                pair.add(&[without, with]);
            }
        }
        for (mode, pair, beside) in pairs {
            let category = category(connections, mode);
            pair.conclude(&category, [WITHOUT, with(mode)], document);
            beside.conclude_ratio(&category, [FLOOR, with(mode)], document);
        }
    }
    Ok(())
}

/// The two namespaces.
pub(super) fn world() -> io::Result<(Namespace, Namespace)> {
    let (host, client) = (Namespace::make("in")?, Namespace::make("client")?);
    host.ip(&format!(
        "link add h0 type veth peer name c0 netns {}",
        client.name()
    ))?;
    for (namespace, interface, address) in [
        (&host, "h0", "192.0.2.2/24"),
        (&client, "c0", "192.0.2.1/24"),
    ] {
        namespace.ip(&format!("addr add {address} dev {interface}"))?;
        namespace.ip(&format!("link set {interface} up"))?;
    }
    Ok((host, client))
}

/// Has `nft` do something in a namespace.
pub(super) fn nft(namespace: &Namespace, rules: &str) -> anyhow::Result<()> {
    let output = namespace.within(|| Command::new("nft").arg(rules).output())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "nft: {}", said.trim());
    Ok(())
}

/// Why there is no `nft`, if there is none.
pub(super) fn without_nft() -> Option<String> {
    let version = Command::new("nft").arg("--version").output();
    version.err().map(|error| format!("nft: {error}"))
}

/// The least HTTP server: a thread a connection, which only looks for the end of a request.
pub(super) fn serve(address: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                // The client has gone.
                let _ = answer(stream);
            });
        }
    });
    Ok(())
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut bytes, mut filled) = ([0; 4096], 0);
    loop {
        match stream.read(&mut bytes[filled..])? {
            0 => return Ok(()),
            length => filled += length,
        }
        if bytes[..filled].ends_with(b"\r\n\r\n") {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")?;
            filled = 0;
        }
    }
}
