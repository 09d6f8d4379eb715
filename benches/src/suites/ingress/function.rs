//! Datagrams to a Python and to a native function's port, and requests to a Python function's, at two servers in turns: one has the interface, and reads datagrams from
//! AF_XDP; the other has no ingress at the interface, and reads them from a socket.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use hearth_testkit::namespaces::Namespace;
use serde_json::{Value, json};

use super::datagrams::{CLIENT, PORT, QUICK_TURN, TURN, conclude};
use super::echo::{Echoed, echoes};
use super::world::{CONNECTIONS, HOST, world};
use crate::client::request;
use crate::load::{self, Observed};
use crate::processes::family_cpu_time;
use crate::results::Document;
use crate::scale::Scale;
use crate::server::{Runtime, Server, program};
use crate::suites::pair::Pair;

/// Datagrams under way at a time.
pub const UNDER_WAY: [usize; 2] = [1, 16];
/// What the report calls the servers.
pub const SOCKET: &str = "socket";
/// See [`SOCKET`].
pub const AF_XDP: &str = "AF_XDP";

/// Whom the datagrams are for: each has a port of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// A function in Python.
    Python,
    /// The same in Rust.
    Native,
}

impl Receiver {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Python, Self::Native];

    fn port(self) -> u16 {
        match self {
            Self::Python => PORT,
            Self::Native => NATIVE_PORT,
        }
    }

    /// What the report calls a datagram for it.
    pub fn datagram(self) -> &'static str {
        match self {
            Self::Python => "a datagram to a Python function",
            Self::Native => "a datagram to a native function",
        }
    }

    /// The category of so many datagrams under way.
    pub fn category(self, under_way: usize) -> String {
        format!("{}, {under_way} under way", self.datagram())
    }
}

const ROUNDS: usize = 20;
const ECHO: &str = r#"
def handler(event, context):
    return {"body": event.get("body") or "", "isBase64Encoded": True}
"#;

/// The native function's port.
const NATIVE_PORT: u16 = 9_002;
/// The port for HTTP.
const TCP_PORT: u16 = 9_001;
/// Many short rounds: what is looked for is less than what a shared host's speed drifts by in a second.
const TCP_ROUNDS: usize = 120;
const TCP_TURN: Duration = Duration::from_millis(100);
/// What the report calls the servers where requests are HTTP.
pub const SERVERS: [&str; 2] = ["without", "with the ingress at the interface"];

/// The category of requests at so many connections.
pub fn requests(connections: usize) -> String {
    let plural = if connections == 1 { "" } else { "s" };
    format!("HTTP to a Python function's port, {connections} connection{plural}")
}

/// A host of its own with a server, and the client's end of its veth.
struct Host {
    row: &'static str,
    namespace: Namespace,
    client: Namespace,
    server: Server,
}

/// Measures both servers.
pub(super) fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    // The servers end with the thread that started them, which goes from namespace to namespace.
    thread::scope(|scope| {
        let measured = scope.spawn(|| in_turns(scale, document)).join();
        measured.map_err(|_| anyhow::anyhow!("the measurement panicked"))?
    })
}

fn in_turns(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let all = "0.0.0.0";
    let hosts = [
        host(SOCKET, &[("HEARTH_TRIGGER_ADDRESS", all)])?,
        host(
            AF_XDP,
            &[
                ("HEARTH_TRIGGER_ADDRESS", all),
                ("HEARTH_XDP_INTERFACE", "h0"),
            ],
        )?,
    ];
    for Host {
        row,
        server,
        namespace,
        ..
    } in &hosts
    {
        namespace.enter()?;
        if let Err(reason) = server.runtime(Runtime::Python)? {
            document.skip(&Receiver::Python.category(UNDER_WAY[0]), reason);
            return Ok(());
        }
        let node = server.call("GET", "/node", &Value::Null)?;
        let missing = &node["ingress"]["interfaces"][0]["not_af_xdp"];
        if let Some(reason) = missing.as_str() {
            document.skip(row, reason);
            return Ok(());
        }
        let triggers = json!({ "triggers": [
            { "protocol": "udp", "port": PORT },
            { "protocol": "tcp", "port": TCP_PORT },
        ] });
        server.deploy("echo", Runtime::Python, ECHO, &triggers)?;
        let triggers = json!([{ "protocol": "udp", "port": NATIVE_PORT }]).to_string();
        let echo = program("native_echo")?;
        server.deploy_program("native-echo", &echo, &[("triggers", &triggers)])?;
        for name in ["echo", "native-echo"] {
            let ingress =
                server.call("GET", &format!("/functions/{name}/ingress"), &Value::Null)?;
            let by = if *row == AF_XDP { "af_xdp" } else { "socket" };
            ensure!(ingress["ports"][0]["by"] == by, "{row}: {ingress}");
        }
    }
    for receiver in Receiver::ALL {
        udp(&hosts, receiver, scale, document)?;
    }
    tcp(&hosts, scale, document)
}

/// Datagrams at a function's port.
fn udp(
    hosts: &[Host; 2],
    receiver: Receiver,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    let address = SocketAddr::new(HOST.ip(), receiver.port());
    for under_way in UNDER_WAY {
        let mut seen = [(); 2].map(|()| (Echoed::default(), Duration::ZERO));
        for _ in 0..scale.pick(ROUNDS, 1) {
            for (host, (seen, cpu)) in hosts.iter().zip(&mut seen) {
                let turn = scale.pick(TURN, QUICK_TURN);
                let before = family_cpu_time(host.server.pid())?;
                let client = || echoes(CLIENT, address, under_way, turn);
                let echoed = host.client.within(client).context(host.row)?;
                *cpu += family_cpu_time(host.server.pid())?.saturating_sub(before);
                seen.extend(&echoed);
            }
        }
        for (host, (seen, cpu)) in hosts.iter().zip(seen) {
            let category = receiver.category(under_way);
            let rate = seen.samples.len() as f64 / seen.took.as_secs_f64();
            document.figure(&category, host.row, rate, "datagrams/s");
            conclude(&category, host.row, seen, cpu, document);
        }
    }
    Ok(())
}

/// Requests at the functions' TCP ports.
fn tcp(hosts: &[Host; 2], scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let address = SocketAddr::new(HOST.ip(), TCP_PORT);
    let request = request("GET", "/", b"");
    let turn = scale.pick(TCP_TURN, QUICK_TURN);
    for connections in CONNECTIONS {
        let mut seen = [(); 2].map(|()| Observed::default());
        let mut pair = Pair::default();
        for round in 0..scale.pick(TCP_ROUNDS, 1) {
            let mut rates = [0.0; 2];
            // Each of them is the first in every second round.
            for one in [round % 2, 1 - round % 2] {
                let drive = || Ok(load::drive(address, &request, connections, turn));
                let host = &hosts[one];
                let observed = host.client.within(drive)?.context(host.row)?;
                rates[one] = observed.rate();
                seen[one].extend(&observed);
            }
            pair.add_rates(rates);
        }
        let category = requests(connections);
        for (seen, row) in seen.into_iter().zip(SERVERS) {
            document.figure(&category, row, seen.rate(), "requests/s");
            document.add(&category, row, seen.samples);
        }
        pair.conclude_ratio(&category, SERVERS, document);
    }
    Ok(())
}

fn host(row: &'static str, settings: &[(&str, &str)]) -> anyhow::Result<Host> {
    let (namespace, client) = world().context("network namespaces for a server")?;
    namespace.enter()?;
    Ok(Host {
        row,
        server: Server::start(settings)?,
        namespace,
        client,
    })
}
