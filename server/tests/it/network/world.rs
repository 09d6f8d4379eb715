//! A small internet: a network namespace that is the host's, one that is everything else, with a DNS server and web servers.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;

use hearth_testkit::namespaces::Namespace;
use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{RData, Record, RecordType};
use parking_lot::Mutex;

use crate::support::Server;

/// Public addresses at which web servers answer.
pub const WEB: &str = "93.184.216.34";
pub const WEB6: &str = "2606:2800:220::34";
pub const OTHER: &str = "93.184.216.99";
/// One at which nobody answers.
pub const SILENT: &str = "93.184.216.200";
/// For servers that a test starts: a database, a cache, and whoever speaks TLS.
pub const DATABASE: &str = "93.184.216.54";
pub const CACHE: &str = "93.184.216.63";
pub const SECURE: &str = "93.184.216.44";
/// A private one, and the metadata service's, which would answer as well.
pub const PRIVATE: &str = "10.9.9.9";
pub const METADATA: &str = "169.254.169.254";
const DNS: &str = "93.184.216.53";

/// What the DNS server knows and was asked.
#[derive(Default)]
pub struct Zone {
    names: HashMap<String, Vec<IpAddr>>,
    ttl: u32,
    pub asked: Vec<String>,
}

/// Two namespaces, for the time of a test.
pub struct World {
    /// Keeps its name until the test is over.
    _host: Namespace,
    pub outside: Namespace,
    pub zone: Arc<Mutex<Zone>>,
}

impl World {
    /// Makes them and enters the host's, with this thread: what it starts is in it.
    pub fn enter() -> Self {
        Self::made().expect("namespaces")
    }

    fn made() -> io::Result<Self> {
        let (host, outside) = (Namespace::make("host")?, Namespace::make("out")?);
        let zone: Arc<Mutex<Zone>> = Arc::default();
        zone.lock().ttl = 60;
        let out = outside.name();
        host.ip(&format!("link add wan type veth peer name eth netns {out}"))?;
        host.ip("link set wan up")?;
        outside.ip("link set eth up")?;
        for address in ["93.184.216.1/24", "2606:2800:220::1/64"] {
            host.ip(&format!("addr add {address} dev wan nodad"))?;
        }
        for address in [WEB, OTHER, DATABASE, CACHE, SECURE, PRIVATE, METADATA, DNS] {
            outside.ip(&format!("addr add {address}/32 dev eth"))?;
        }
        outside.ip(&format!("addr add {WEB6}/128 dev eth nodad"))?;
        for (family, all) in [("-4", "0.0.0.0/0"), ("-6", "::/0")] {
            host.ip(&format!("{family} route add {all} dev wan"))?;
            outside.ip(&format!("{family} route add {all} dev eth"))?;
        }
        outside.within(|| {
            serve_names(zone.clone())?;
            for port in [80, 8080] {
                serve_web(port)?;
            }
            Ok(())
        })?;
        host.enter()?;
        Ok(Self {
            _host: host,
            outside,
            zone,
        })
    }

    /// A server whose functions ask this world's DNS server.
    pub fn server(&self) -> Server {
        Server::start_with(&[("HEARTH_NETWORK_RESOLVERS", DNS)])
    }

    /// A server whose functions ask this world's DNS server, with further settings.
    pub fn server_with(&self, settings: &[(&str, &str)], dir: &std::path::Path) -> Server {
        let all = [&[("HEARTH_NETWORK_RESOLVERS", DNS)], settings].concat();
        Server::start_in_with(dir, &all)
    }

    /// Does something outside, where servers are.
    pub fn outside(&self, what: impl FnOnce() -> io::Result<()> + Send) {
        self.outside.within(what).expect("a server");
    }

    /// What a name resolves to.
    pub fn name(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses
            .iter()
            .map(|text| text.parse().expect("an address"));
        let addresses = addresses.collect();
        self.zone.lock().names.insert(name.to_owned(), addresses);
    }

    /// How long what a name resolves to stands, in seconds.
    pub fn ttl(&self, ttl: u32) {
        self.zone.lock().ttl = ttl;
    }
}

/// Answers questions for names, by UDP. Ends with the test's process.
fn serve_names(zone: Arc<Mutex<Zone>>) -> io::Result<()> {
    let socket = UdpSocket::bind((DNS, 53))?;
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let Ok(question) = Message::from_vec(&bytes[..length]) else {
                continue;
            };
            let answer = answer(&question, &zone);
            let _ = socket.send_to(&answer.to_vec().expect("an answer"), from);
        }
    });
    Ok(())
}

fn answer(question: &Message, zone: &Mutex<Zone>) -> Message {
    let mut answer = Message::new(question.metadata.id, MessageType::Response, OpCode::Query);
    let query = question.queries[0].clone();
    let name = query.name.to_ascii().to_lowercase();
    let name = name.trim_end_matches('.').to_owned();
    let mut zone = zone.lock();
    zone.asked.push(name.clone());
    match zone.names.get(&name) {
        None => answer.metadata.response_code = ResponseCode::NXDomain,
        Some(addresses) => {
            for address in addresses {
                let data = match (address, query.query_type) {
                    (IpAddr::V4(address), RecordType::A) => RData::A(A(*address)),
                    (IpAddr::V6(address), RecordType::AAAA) => RData::AAAA(AAAA(*address)),
                    _ => continue,
                };
                answer.add_answer(Record::from_rdata(query.name.clone(), zone.ttl, data));
            }
        }
    }
    answer.add_query(query);
    answer
}

/// Answers every request with the address that it reached; below `/to/`, it redirects.
fn serve_web(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind(("::", port))?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || drop(respond(stream)));
        }
    });
    Ok(())
}

fn respond(mut stream: TcpStream) -> io::Result<()> {
    let mut request = Vec::new();
    let mut bytes = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut bytes)? {
            0 => return Ok(()),
            length => request.extend_from_slice(&bytes[..length]),
        }
    }
    let text = String::from_utf8_lossy(&request);
    let path = text.split(' ').nth(1).unwrap_or_default();
    let reached: SocketAddr = stream.local_addr()?;
    let answer = match path.strip_prefix("/to/") {
        Some(place) => {
            format!(
                "HTTP/1.1 302 Found\r\nLocation: http://{place}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
        }
        None => {
            let body = format!("reached {}", reached.ip().to_canonical());
            let length = body.len();
            format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
        }
    };
    stream.write_all(answer.as_bytes())
}
