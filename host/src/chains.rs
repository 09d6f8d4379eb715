//! Connections of chains' instances, each with both of its ends: the server may make none itself. Those of one chain are in a network
//! namespace that has nothing else. So a member that takes its end apart (`connect` to nowhere, then to somewhere) reaches no network and
//! no other chain.

mod network;

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::SandboxError;
use crate::protocol::ChainNumber;

/// Most chains with connections. A namespace takes some 100 KiB of the kernel's memory.
const CHAINS_MAX: usize = 256;
/// Most connections of a chain, also of instances that have ended: as many as it may start.
const CONNECTIONS_MAX: u32 = 512;

/// The namespaces. They are entered on threads of their own.
#[derive(Default)]
pub(crate) struct Chains(HashMap<ChainNumber, Namespace>);

struct Namespace {
    network: OwnedFd,
    connections: u32,
}

impl Chains {
    /// Makes a connection for an instance of a chain: its end, and the gateway's.
    pub(crate) fn connect(&mut self, chain: ChainNumber) -> Result<[OwnedFd; 2], SandboxError> {
        let failed = |error: io::Error| SandboxError::step("chain", error);
        if !self.0.contains_key(&chain) {
            if self.0.len() >= CHAINS_MAX {
                let error = "too many chains have connections";
                return Err(SandboxError::specification(error));
            }
            let network = on_a_thread(network::make).map_err(failed)?;
            let namespace = Namespace {
                network,
                connections: 0,
            };
            self.0.insert(chain, namespace);
        }
        let Some(namespace) = self.0.get_mut(&chain) else {
            return Err(SandboxError::Gone);
        };
        if namespace.connections >= CONNECTIONS_MAX {
            let error = "this chain has had all connections that it may have";
            return Err(SandboxError::specification(error));
        }
        namespace.connections += 1;
        let network = namespace.network.as_fd();
        on_a_thread(|| {
            move_into_link_name_space(network, Some(LinkNameSpaceType::Network))?;
            connected()
        })
        .map_err(failed)
    }

    /// Lets a chain have no more of them. Those that there are stay.
    pub(crate) fn end(&mut self, chain: ChainNumber) {
        self.0.remove(&chain);
    }
}

/// Runs something on a thread that ends afterwards, and with it whatever namespaces it has entered.
fn on_a_thread<T: Send>(what: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, what)?;
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("a thread has panicked")))
    })
}

/// Both ends of a TCP connection over the loopback. Not of another kind: the kernel runs programs of the type SK_MSG on TCP only.
fn connected() -> io::Result<[OwnedFd; 2]> {
    let socket = || {
        let family = AddressFamily::INET;
        rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
    };
    let (listener, near) = (socket()?, socket()?);
    rustix::net::bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    rustix::net::listen(&listener, 1)?;
    let address = SocketAddrV4::try_from(rustix::net::getsockname(&listener)?)?;
    rustix::net::connect(&near, &address)?;
    let far = rustix::net::accept_with(&listener, SocketFlags::CLOEXEC)?;
    for end in [&near, &far] {
        sockopt::set_tcp_nodelay(end, true)?;
    }
    Ok([near, far])
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_leads_to_its_other_end_and_its_namespace_to_nothing() {
        if !rustix::process::geteuid().is_root() {
            return hearth_testkit::skipped::skip("needs root");
        }
        let mut chains = Chains::default();
        // In the namespace of the test nobody can be reached from there.
        let outside = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let outside = outside.local_addr().unwrap();
        let mut addresses = Vec::new();
        for chain in [7, 7, 8] {
            let [near, far] = chains.connect(chain).unwrap().map(TcpStream::from);
            (&near).write_all(b"descriptor").unwrap();
            let mut bytes = [0; 10];
            (&far).read_exact(&mut bytes).unwrap();
            assert_eq!(&bytes, b"descriptor");
            assert!(near.nodelay().unwrap() && far.nodelay().unwrap());
            // A hostile member takes its end apart.
            let near = OwnedFd::from(near);
            rustix::net::connect_unspec(&near).unwrap();
            let refused = rustix::net::connect(&near, &outside).unwrap_err();
            assert_eq!(refused, rustix::io::Errno::CONNREFUSED);
            addresses.push(far.local_addr().unwrap());
        }
        let network = |chain| {
            let file = File::from(chains.0[&chain].network.try_clone().unwrap());
            std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap())
        };
        assert_ne!(network(7), network(8), "each chain has its own");
        chains.end(7);
        assert_eq!(chains.0.len(), 1);
    }

    #[test]
    fn a_hostile_server_gets_so_many_and_no_more() {
        if !rustix::process::geteuid().is_root() {
            return hearth_testkit::skipped::skip("needs root");
        }
        let mut chains = Chains::default();
        drop(chains.connect(1).unwrap());
        chains.0.get_mut(&1).unwrap().connections = CONNECTIONS_MAX;
        let refused = chains.connect(1).unwrap_err();
        assert!(refused.to_string().contains("all connections"), "{refused}");
        let network = || chains.0[&1].network.try_clone().unwrap();
        let full: Vec<_> = (2..=CHAINS_MAX as u32)
            .map(|chain| (chain, network()))
            .collect();
        for (chain, network) in full {
            let connections = 0;
            chains.0.insert(
                chain,
                Namespace {
                    network,
                    connections,
                },
            );
        }
        let refused = chains.connect(9_999).unwrap_err();
        assert!(refused.to_string().contains("too many chains"), "{refused}");
    }
}
