//! Network namespaces of the tests' own. They go with their value; `ip` sets them up.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};
use rustix::net::{Protocol, RawProtocol, sockopt};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::frames::SENDER;

/// How long a packet is waited for that has to come.
pub const PATIENCE: Duration = Duration::from_secs(5);

pub struct Namespace(OwnedFd);

impl Namespace {
    pub fn new() -> Self {
        let made = std::thread::spawn(|| {
            // SAFETY: only this thread gets another network namespace, and no memory or descriptors of its own.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("a network namespace");
            OwnedFd::from(File::open("/proc/thread-self/ns/net").expect("its descriptor"))
        });
        let namespace = Self(made.join().expect("made"));
        namespace.ip("link set lo up");
        namespace
    }

    /// Runs something in it.
    pub fn run<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name(test_name());
            let running = thread.spawn_scoped(scope, || {
                move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
                    .expect("entered");
                what()
            });
            match running.expect("a thread").join() {
                Ok(value) => value,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Runs `ip` in it.
    pub fn ip(&self, arguments: &str) {
        let arguments: Vec<_> = arguments.split(' ').collect();
        let output = self
            .run(|| Command::new("ip").args(&arguments).output())
            .expect("ip runs");
        assert!(
            output.status.success(),
            "ip {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    pub fn index(&self, interface: &str) -> u32 {
        let all = self.run(hearth_ebpf::interfaces::list).expect("interfaces");
        all.iter()
            .find(|one| one.name == interface)
            .expect("the interface")
            .index
    }

    /// Its path, for `ip link set … netns`.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn test_name() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}

/// Two namespaces joined by a veth: packets go from `client` (`c0`) to `host` (`h0`).
pub struct Wire {
    pub client: Namespace,
    pub host: Namespace,
}

impl Wire {
    pub fn new() -> Self {
        let (client, host) = (Namespace::new(), Namespace::new());
        host.ip(&format!(
            "link add h0 address 02:00:00:00:00:02 type veth peer name c0 netns {}",
            client.path()
        ));
        client.ip("link set c0 address 02:00:00:00:00:01");
        // The corpus has frames of up to 1,604 bytes. In native mode a veth takes up to a page, less headroom.
        host.ip("link set h0 mtu 3000");
        client.ip("link set c0 mtu 3000");
        host.ip("addr add 192.0.2.2/24 dev h0");
        host.ip("addr add 2001:db8::2/64 dev h0 nodad");
        host.ip("link set h0 up");
        client.ip("addr add 192.0.2.1/24 dev c0");
        client.ip("addr add 2001:db8::1/64 dev c0 nodad");
        client.ip("link set c0 up");
        Self { client, host }
    }
}

/// A packet socket on an interface: sends frames as they are, and sees all that the stack gets.
pub struct Tap {
    socket: OwnedFd,
    index: u32,
}

impl Tap {
    pub fn new(namespace: &Namespace, interface: &str) -> Self {
        let index = namespace.index(interface);
        namespace.run(|| {
            let all =
                Protocol::from_raw(RawProtocol::new(u32::from(3_u16.to_be())).expect("not 0"));
            let flags = SocketFlags::CLOEXEC;
            let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, Some(all))
                .expect("a socket");
            rustix::net::bind(&socket, &link(index)).expect("bound");
            sockopt::set_socket_recv_buffer_size(&socket, 1 << 22).expect("a buffer");
            Self { socket, index }
        })
    }

    pub fn send(&self, frame: &[u8]) {
        let sent =
            sendto(&self.socket, frame, SendFlags::empty(), &link(self.index)).expect("sent");
        assert_eq!(sent, frame.len());
    }

    /// The next frame that a test sent (its source address tells), within the time.
    pub fn receive(&self, time: Duration) -> Option<Vec<u8>> {
        let end = Instant::now() + time;
        let mut buffer = vec![0; 1 << 16];
        loop {
            match recv(&self.socket, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((_, length)) if buffer[6..12] == SENDER => {
                    return Some(buffer[..length].to_vec());
                }
                Ok(_) => {}
                Err(rustix::io::Errno::AGAIN) if Instant::now() < end => {
                    std::thread::sleep(Duration::from_micros(50));
                }
                Err(rustix::io::Errno::AGAIN) => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn link(index: u32) -> LinkAddress {
    LinkAddress(index)
}

/// `sockaddr_ll`, which rustix has none of.
struct LinkAddress(u32);

// SAFETY: it hands over the 20 bytes of `sockaddr_ll` (family, protocol, index, type, length, address), which live as long
// as the call.
unsafe impl rustix::net::addr::SocketAddrArg for LinkAddress {
    unsafe fn with_sockaddr<R>(
        &self,
        call: impl FnOnce(
            *const rustix::net::addr::SocketAddrOpaque,
            rustix::net::addr::SocketAddrLen,
        ) -> R,
    ) -> R {
        #[repr(C, align(4))]
        struct Bytes([u8; 20]);
        let mut bytes = Bytes([0; 20]);
        bytes.0[..2].copy_from_slice(&17_u16.to_ne_bytes());
        bytes.0[2..4].copy_from_slice(&3_u16.to_be_bytes());
        bytes.0[4..8].copy_from_slice(&self.0.to_ne_bytes());
        call((&raw const bytes).cast(), 20)
    }
}
