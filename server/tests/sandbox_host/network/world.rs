//! A small internet: a network namespace that is the host's, one that is everything else, and servers in both.
//!
//! ```text
//! sandboxes ══ gateway ══ host ══ outside: public addresses, and private ones that would answer as well
//! ```

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use hearth::sandbox::{KernelPolicy, Prefix, Prefixed, Protocol};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
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
/// Ports of the servers: two of TCP that echo, one of UDP that echoes, one of TCP that sends without end.
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
    host: String,
    outside: String,
}

impl World {
    /// Makes them and enters the host's, with this thread.
    pub fn enter() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = |what: &str| format!("ht-{what}-{}-{number}", std::process::id());
        let world = Self {
            host: name("host"),
            outside: name("out"),
        };
        for name in [&world.host, &world.outside] {
            ip(&["netns", "add", name]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        world.in_host("link add wan type veth peer name eth netns OUTSIDE");
        world.in_host("link set wan up");
        world.in_outside("link set eth up");
        for address in HOST {
            world.in_host(&format!(
                "addr add {} dev wan nodad",
                with_length(address, 24, 64)
            ));
        }
        for address in PUBLIC.iter().chain(&PRIVATE) {
            world.in_outside(&format!(
                "addr add {} dev eth nodad",
                with_length(address, 32, 128)
            ));
        }
        // On both sides all the others are on the link, and none has a router between.
        for (family, all) in [("-4", "0.0.0.0/0"), ("-6", "::/0")] {
            world.in_host(&format!("{family} route add {all} dev wan"));
            world.in_outside(&format!("{family} route add {all} dev eth"));
        }
        let outside: Vec<_> = PUBLIC.into_iter().chain(PRIVATE).collect();
        for (name, addresses) in [(&world.host, HOST.to_vec()), (&world.outside, outside)] {
            within(&format!("/run/netns/{name}"), || {
                serve_tcp(TCP)?;
                serve_tcp(OTHER_TCP)?;
                serve_udp(&addresses)?;
                stream(STREAM)
            })
            .expect("servers");
        }
        let host = std::fs::File::open(format!("/run/netns/{}", world.host)).expect("a namespace");
        move_into_link_name_space(host.as_fd(), Some(LinkNameSpaceType::Network)).expect("entered");
        world
    }

    pub fn in_host(&self, command: &str) {
        self.run(&self.host, command);
    }

    pub fn in_outside(&self, command: &str) {
        self.run(&self.outside, command);
    }

    fn run(&self, name: &str, command: &str) {
        let command = command.replace("OUTSIDE", &self.outside);
        let words: Vec<_> = ["-n", name].into_iter().chain(command.split(' ')).collect();
        ip(&words);
    }

    /// What a program prints that runs in the host's namespace.
    pub fn look(&self, program: &str, arguments: &[&str]) -> String {
        let output = Command::new("ip")
            .args(["netns", "exec", &self.host, program])
            .args(arguments)
            .output()
            .expect("ip netns exec");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for name in [&self.host, &self.outside] {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

fn with_length(address: &str, four: u8, six: u8) -> String {
    let length = if address.contains(':') { six } else { four };
    format!("{address}/{length}")
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("ip, of iproute2");
    assert!(
        output.status.success(),
        "ip {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
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

/// The network namespace of the gateway that has this address: that of one of this process's threads.
pub fn gateway_of(address: &str) -> String {
    let tasks = std::fs::read_dir("/proc/self/task")
        .expect("threads")
        .flatten();
    let pid = std::process::id();
    let mut namespaces = tasks
        .filter(|task| {
            let name = std::fs::read_to_string(task.path().join("comm"));
            name.is_ok_and(|name| name.trim() == "hearth-network")
        })
        .map(|task| format!("/proc/{pid}/task/{}/ns/net", task.file_name().display()));
    namespaces
        .find(|namespace| look_in(namespace, &["ip", "addr"]).contains(&format!(" {address}/")))
        .expect("a gateway")
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

/// Does something in the network namespace with this path.
pub fn within<T: Send>(path: &str, what: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let namespace = std::fs::File::open(path)?;
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
                what()
            })
            .join()
            .expect("no panic")
    })
}

/// Answers every connection with what it says. Ends with the test's process.
fn serve_tcp(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind(("::", port))?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut bytes = [0; 1024];
                while let Ok(length @ 1..) = stream.read(&mut bytes) {
                    if stream.write_all(&bytes[..length]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    Ok(())
}

fn serve_udp(addresses: &[&str]) -> io::Result<()> {
    for address in addresses {
        // At each address: a socket of all answers from any.
        let socket = UdpSocket::bind((*address, UDP))?;
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
