//! A small internet, two name spaces without anything between, and what every container has on its way out:
//!
//! ```text
//! sandbox ══ gateway ══ host ══ outside       through a policy
//!                      plain ══ outside       the same without
//!           container ══ host2 ══ outside     forwarded and masqueraded by the kernel, without a policy
//! ```
//! The servers are outside, for both.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};

use hearth_testkit::namespaces::Namespace;

use super::https;

/// Where they are on the internet, and for the plain namespace.
pub const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));
pub const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// And for the container.
pub const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1));
/// Sends back what comes, takes all that comes, sends without end.
pub const ECHO: u16 = 443;
pub const SINK: u16 = 9000;
pub const SOURCE: u16 = 9001;
/// Resolves every name, to [`PUBLIC`].
pub const NAMES: u16 = 53;
/// Names that the policy allows are below it.
pub const DOMAIN: &str = "example.com";

/// Bytes that are sent at once without end.
const CHUNK: usize = 128 << 10;

/// See the module.
pub struct World {
    /// The host's, where the server runs.
    pub host: Namespace,
    /// The one that is joined to the outside by one pair of interfaces alone.
    pub plain: Namespace,
    /// The one that a host forwards and masquerades for.
    pub container: Namespace,
    /// That host's, which goes with this value.
    _host2: Namespace,
    /// By whose certificate the hosts by HTTPS are known, PEM.
    pub authority: String,
}

impl World {
    /// Makes it.
    pub fn make() -> io::Result<Self> {
        let (host, plain) = (Namespace::make("host")?, Namespace::make("plain")?);
        let (container, host2) = (Namespace::make("container")?, Namespace::make("host2")?);
        let outside = Namespace::make("out")?;
        for (namespace, theirs, ours, own, block) in [
            (
                &host,
                "wan",
                "93.184.216.1/24",
                format!("{PUBLIC}/24"),
                "internet",
            ),
            (&plain, "eth0", "192.0.2.2/24", format!("{NEAR}/24"), "near"),
            (&host2, "wan", "203.0.113.2/24", format!("{FAR}/24"), "far"),
        ] {
            let out = outside.name();
            namespace.ip(&format!(
                "link add {theirs} type veth peer name {block} netns {out}"
            ))?;
            namespace.ip(&format!("addr add {ours} dev {theirs}"))?;
            namespace.ip(&format!("link set {theirs} up"))?;
            outside.ip(&format!("addr add {own} dev {block}"))?;
            outside.ip(&format!("link set {block} up"))?;
        }
        let authority = outside.within(|| {
            serve(ECHO, echo)?;
            serve(SINK, sink)?;
            serve(SOURCE, source)?;
            serve_names()?;
            https::serve()
        })?;
        masquerade(&container, &host2)?;
        // The servers hold the namespace, which needs no name any more.
        Ok(Self {
            host,
            plain,
            container,
            _host2: host2,
            authority,
        })
    }
}

/// Has the host forward and masquerade for the container, as container engines do.
fn masquerade(container: &Namespace, host: &Namespace) -> io::Result<()> {
    let name = host.name();
    container.ip(&format!(
        "link add eth0 type veth peer name veth0 netns {name}"
    ))?;
    container.ip("addr add 172.17.0.2/16 dev eth0")?;
    host.ip("addr add 172.17.0.1/16 dev veth0")?;
    container.ip("link set eth0 up")?;
    host.ip("link set veth0 up")?;
    container.ip("route add default via 172.17.0.1")?;
    host.within(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1"))?;
    const RULES: &str = "table ip engine {
        chain forward { type filter hook forward priority 0; policy drop;
            iifname veth0 accept
            oifname veth0 ct state established,related accept
        }
        chain postrouting { type nat hook postrouting priority 100;
            ip saddr 172.17.0.0/16 oifname != veth0 masquerade
        }
    }";
    host.look("nft", &[RULES])?;
    if host
        .look("nft", &["list", "ruleset"])?
        .contains("masquerade")
    {
        return Ok(());
    }
    Err(io::Error::other(
        "nft (of Debian's nftables) does not masquerade",
    ))
}

/// Serves one connection after the other, on threads that end with this process.
fn serve(port: u16, what: fn(TcpStream) -> io::Result<()>) -> io::Result<()> {
    let listener = TcpListener::bind(("0.0.0.0", port))?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The other side has gone.
            let _ = what(stream);
        }
    });
    Ok(())
}

fn echo(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = [0; 1024];
    loop {
        match stream.read(&mut bytes)? {
            0 => return Ok(()),
            length => stream.write_all(&bytes[..length])?,
        }
    }
}

fn sink(mut stream: TcpStream) -> io::Result<()> {
    let mut bytes = vec![0; CHUNK];
    while stream.read(&mut bytes)? > 0 {}
    Ok(())
}

fn source(mut stream: TcpStream) -> io::Result<()> {
    let bytes = vec![0; CHUNK];
    loop {
        stream.write_all(&bytes)?;
    }
}

fn serve_names() -> io::Result<()> {
    for address in [PUBLIC, NEAR] {
        // At each address, from which the answer then comes.
        let socket = UdpSocket::bind(SocketAddr::new(address, NAMES))?;
        std::thread::spawn(move || {
            let mut bytes = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut bytes) {
                if let Some(answer) = answer(&bytes[..length]) {
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
    }
    Ok(())
}

/// A question for the IPv4 address of a name (RFC 1035).
pub fn question(id: u16, name: &str) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    // Recursion is desired; one question.
    bytes.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        bytes.push(label.len() as u8);
        bytes.extend_from_slice(label.as_bytes());
    }
    // The root, A, IN.
    bytes.extend_from_slice(&[0, 0, 1, 0, 1]);
    bytes
}

/// The answer to it: one address, for a minute.
fn answer(question: &[u8]) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    let name = question.get(HEADER..)?.iter().position(|byte| *byte == 0)?;
    let asked = question.get(HEADER..HEADER + name + 5)?;
    let IpAddr::V4(address) = PUBLIC else {
        return None;
    };
    let mut bytes = question.get(..2)?.to_vec();
    bytes.extend_from_slice(&[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    bytes.extend_from_slice(asked);
    // The name of the question, A, IN, its time, four bytes.
    bytes.extend_from_slice(&[0xc0, HEADER as u8, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
    bytes.extend_from_slice(&address.octets());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered_with_the_address() {
        let asked = question(7, "a.example.com");
        let said = answer(&asked).expect("an answer");
        assert_eq!(said[..2], asked[..2]);
        assert_eq!(
            said[HEADER_END..][..asked.len() - HEADER_END],
            asked[HEADER_END..]
        );
        assert!(said.ends_with(&[93, 184, 216, 34]));
        assert_eq!(answer(&asked[..20]), None);
    }

    const HEADER_END: usize = 12;
}
