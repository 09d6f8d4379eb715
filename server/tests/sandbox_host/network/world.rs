//! A small internet: a network namespace that is the host's, one that is everything else, and servers in both.
//!
//! ```text
//! sandboxes ══ gateway ══ host ══ outside: public addresses, and private ones that would answer as well
//! ```

use std::io::{self, Write as _};
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::Command;

use hearth::sandbox::{KernelPolicy, Prefix, Prefixed, Protocol};
use hearth_testkit::namespaces::{self, Namespace};
use hearth_testkit::processes;
use serde_json::Value;

use crate::harness::{Harness, Running};

/// Addresses outside at which every server answers. The first two of each family are public.
pub const PUBLIC: [&str; 4] = [
    "93.184.216.34",
    "93.184.216.99",
    "2606:2800:220::34",
    "2606:2800:220::99",
];
/// They would answer, and no function shall reach them.
pub const PRIVATE: [&str; 6] = [
    "10.9.9.9",
    "192.168.77.7",
    "172.16.3.4",
    "169.254.169.254",
    "100.100.100.200",
    "fd00:77::7",
];
/// Addresses of the host itself.
pub const HOST: [&str; 4] = ["93.184.216.1", "2606:2800:220::1", "10.9.9.1", "fd00:77::1"];
/// Ports of the servers: three of UDP that echo, two of them of TCP, too; one of TCP that sends without end.
pub const TCP: u16 = 443;
pub const OTHER_TCP: u16 = 8443;
pub const UDP: u16 = 53;
pub const STREAM: u16 = 9000;

/// The template of these tests: runs what it is sent, which answers with `say`.
pub const PROGRAM: &str = "
import errno, os, threading, time
def name(error): return errno.errorcode.get(error.errno, str(error))
def connect(kind, host, port, timeout=10):
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM if kind == 'tcp' else socket.SOCK_DGRAM)
    s.settimeout(timeout)
    s.connect((host, port))
    return s
def echo(s, text=b'ping'):
    s.sendall(text)
    return s.recv(100).decode()
def attempt(kind, host, port, timeout=10):
    try:
        with connect(kind, host, port, timeout) as s: return echo(s)
    except TimeoutError: return 'timeout'
    except OSError as error: return name(error)
kept = {}
while True: exec(control.recv(1 << 16).decode(), globals())
";

/// Two namespaces, for the time of a test.
pub struct World {
    pub host: Namespace,
    pub outside: Namespace,
}

impl World {
    /// Makes them and enters the host's, with this thread.
    pub fn enter() -> Self {
        Self::made().expect("namespaces")
    }

    fn made() -> io::Result<Self> {
        let (host, outside) = (Namespace::make("host")?, Namespace::make("out")?);
        let out = outside.name();
        host.ip(&format!("link add wan type veth peer name eth netns {out}"))?;
        host.ip("link set wan up")?;
        outside.ip("link set eth up")?;
        for address in HOST {
            let address = with_length(address, 24, 64);
            host.ip(&format!("addr add {address} dev wan nodad"))?;
        }
        for address in PUBLIC.iter().chain(&PRIVATE) {
            let address = with_length(address, 32, 128);
            outside.ip(&format!("addr add {address} dev eth nodad"))?;
        }
        // On both sides all the others are on the link, and none has a router between.
        for (family, all) in [("-4", "0.0.0.0/0"), ("-6", "::/0")] {
            host.ip(&format!("{family} route add {all} dev wan"))?;
            outside.ip(&format!("{family} route add {all} dev eth"))?;
        }
        let addresses: Vec<_> = PUBLIC.into_iter().chain(PRIVATE).collect();
        for (namespace, addresses) in [(&host, HOST.to_vec()), (&outside, addresses)] {
            namespace.within(|| {
                serve_tcp(TCP)?;
                serve_tcp(OTHER_TCP)?;
                serve_udp(&addresses)?;
                stream(STREAM)
            })?;
        }
        host.enter()?;
        Ok(Self { host, outside })
    }

    /// Changes the host's namespace by `ip`.
    pub fn in_host(&self, command: &str) {
        self.host.ip(command).expect("changed");
    }

    /// What a program prints that runs in the host's namespace.
    pub fn look(&self, program: &str, arguments: &[&str]) -> String {
        self.host.look(program, arguments).expect("run")
    }
}

fn with_length(address: &str, four: u8, six: u8) -> String {
    let length = if address.contains(':') { six } else { four };
    format!("{address}/{length}")
}

/// Runs a program as root in the network namespace of a process.
pub fn inside(pid: u32, program: &[&str]) {
    let output = Command::new("nsenter")
        .args(["-t", &pid.to_string(), "-n"])
        .args(program)
        .output()
        .expect("nsenter");
    assert!(
        output.status.success(),
        "{program:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The network namespace of the gateway that has this address, of those that this process has started.
pub fn gateway_of(address: &str) -> String {
    let gateways = processes::gateways(std::process::id()).into_iter();
    let mut namespaces = gateways.map(|pid| format!("/proc/{pid}/ns/net"));
    namespaces
        .find(|namespace| look_in(namespace, &["ip", "addr"]).contains(&format!(" {address}/")))
        .expect("a gateway")
}

/// Does something in the network namespace with this path.
pub fn within<T: Send>(path: &str, what: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    namespaces::within(Path::new(path), what)
}

/// What a program prints in the network namespace with this path.
pub fn look_in(namespace: &str, program: &[&str]) -> String {
    let output = Command::new("nsenter")
        .arg(format!("--net={namespace}"))
        .args(program)
        .output()
        .expect("nsenter");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Answers every connection with what it says, thousands at a time. Ends with the test's process.
fn serve_tcp(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind(("::", port))?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    std::thread::spawn(move || runtime.block_on(echo_all(listener)));
    Ok(())
}

async fn echo_all(listener: TcpListener) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (mut stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let (mut from, mut to) = stream.split();
            tokio::io::copy(&mut from, &mut to).await
        });
    }
}

fn serve_udp(addresses: &[&str]) -> io::Result<()> {
    let ports = [UDP, TCP, OTHER_TCP];
    for (address, port) in addresses
        .iter()
        .flat_map(|ip| ports.map(|port| (*ip, port)))
    {
        // At each address: a socket of all answers from any.
        let socket = UdpSocket::bind((address, port))?;
        std::thread::spawn(move || {
            let mut bytes = [0; 1024];
            while let Ok((length, from)) = socket.recv_from(&mut bytes) {
                let _ = socket.send_to(&bytes[..length], from);
            }
        });
    }
    Ok(())
}

/// Sends without end to whoever connects.
fn stream(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind(("::", port))?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut stream = stream;
                while stream.write_all(&[b'x'; 1 << 16]).is_ok() {}
            });
        }
    });
    Ok(())
}

/// A destination of a policy.
pub fn to(address: &str, length: u8, protocol: Protocol, port: u16) -> Prefixed {
    let address: IpAddr = address.parse().expect("an address");
    Prefixed {
        prefix: Prefix::new(address, length).expect("a prefix"),
        protocol,
        ports: port..=port,
    }
}

/// A harness with the program of these tests.
pub fn harness() -> Harness {
    Harness::new(PROGRAM)
}

/// A sandbox with this policy.
pub async fn with_policy(harness: &Harness, policy: KernelPolicy) -> Running {
    let mut spec = harness.spec();
    spec.network = Some(policy);
    harness.create_from(spec).await
}

impl Running {
    /// What some Python says.
    pub async fn run(&self, code: &str) -> Value {
        self.say(code.as_bytes()).await;
        let mut answer = self.receive().await;
        answer[0].take()
    }

    /// What comes of a connection: "ping", or the error.
    pub async fn attempt(&self, kind: &str, address: &str, port: u16) -> String {
        let answer = self
            .run(&format!("say(attempt({kind:?}, {address:?}, {port}))"))
            .await;
        answer.as_str().expect("text").to_owned()
    }
}

/// Bytes that a sandbox gets from [`STREAM`] in two seconds, and how many seconds that took.
pub async fn streamed(sandbox: &Running) -> (f64, f64) {
    let read = format!(
        "
begun = time.monotonic()
s = connect('tcp', {:?}, {STREAM})
got = 0
while time.monotonic() - begun < 2: got += len(s.recv(1 << 16))
say((got, time.monotonic() - begun))",
        PUBLIC[0]
    );
    let came = sandbox.run(&read).await;
    let number = |at: usize| came[at].as_f64().expect("a number");
    (number(0), number(1))
}
