//! A real gateway in a process of its own, in a network namespace of the test's, with both its sockets in the test's hands.

// Each of the tests that have it uses a part.
#![allow(dead_code)]

use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use hearth_gateway::Settings;
use hearth_gateway::process::Process;
use hearth_gateway::protocol::{Reply, Request};
use hearth_gateway::sys::unshare_network;
use hearth_host::memfd::{sealed, socket_pair};
use hearth_host::protocol::{FromGateway, Message, ToGateway};
use hearth_init::fields::Fields as _;
use hearth_init::wire;
use hearth_testkit::wait;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longer than anything here takes; a test that waits this long has failed.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// Says to a process that it is a gateway, not a test.
const ROLE: &str = "HEARTH_TEST_GATEWAY";

/// The gateway and this test's ends of its sockets.
pub struct Conversation {
    pub host: OwnedFd,
    pub server: OwnedFd,
    pub process: Child,
}

/// To be called by a test `a_gateway`: in the process that [`Conversation::begin`] starts it becomes one, and does this when it
/// has dropped its privileges.
pub fn become_gateway(locked_down: impl FnOnce()) {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    // Only this thread drops its privileges, and those that it starts: that is enough, no other works for it.
    let gateway = Process::begin().expect("privileges are dropped");
    gateway.lock_down().expect("locked down");
    locked_down();
    gateway.serve().expect("a good end");
}

impl Conversation {
    /// In a network namespace into which the test's thread goes.
    pub fn begin() -> Self {
        unshare_network().expect("a network namespace");
        let (host, theirs) = socket_pair().expect("a socket");
        let (server, servers) = socket_pair().expect("a socket");
        let process = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "a_gateway", "--ignored", "--nocapture"])
            .env(ROLE, "1")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let settings = sealed(&Settings::default().to_bytes()).expect("sealed");
        let talk = Self {
            host,
            server,
            process,
        };
        let fds = [settings.as_fd(), servers.as_fd()];
        wire::send(&talk.host, &ToGateway::Start.encode(), &fds).expect("sent");
        talk
    }

    pub fn say(&self, request: &Request) {
        self.send(&request.encode(), &[]);
    }

    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        wire::send(&self.server, bytes, fds).expect("sent");
    }

    /// What it says to the server, but for whether the fast way is open; none when it has hung up.
    pub fn reply(&self) -> Option<(Reply, Vec<OwnedFd>)> {
        loop {
            match receive(&self.server) {
                Some((Reply::Fast(_), _)) => {}
                said => return said,
            }
        }
    }

    /// What it says to the host process.
    pub fn to_host(&self) -> Option<FromGateway> {
        receive(&self.host).map(|(said, _)| said)
    }

    /// How it ends, and what it has printed.
    pub fn end(mut self) -> (ExitStatus, String) {
        let ended = || self.process.try_wait().expect("a child");
        let status = wait::poll(TIMEOUT, Duration::from_millis(2), ended).expect("it ends");
        let mut said = String::new();
        let (stdout, stderr) = (self.process.stdout.take(), self.process.stderr.take());
        let _ = stdout.expect("piped").read_to_string(&mut said);
        let _ = stderr.expect("piped").read_to_string(&mut said);
        (status, said)
    }
}

fn receive<M: Message>(socket: &OwnedFd) -> Option<(M, Vec<OwnedFd>)> {
    let mut ready = [PollFd::new(socket, PollFlags::IN)];
    let most = Timespec::try_from(TIMEOUT).expect("fits");
    assert_ne!(poll(&mut ready, Some(&most)).expect("poll"), 0, "no answer");
    let mut bytes = vec![0; M::BYTES];
    match wire::receive(socket, &mut bytes) {
        Ok((0, _)) => None,
        Ok((length, fds)) => Some((M::decode(&bytes[..length]).expect("a message"), fds)),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => None,
        Err(error) => panic!("{error}"),
    }
}
