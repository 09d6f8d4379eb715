//! A pre-warmed sandbox, created before its function is known. It is complete except for what depends on the function,
//! and CRIU in it is as far as it gets without an image ([`gate`]). Stage 0 waits on the host's side and PID 1 inside.
//!
//! ```text
//! server ──ASSIGN──▶ stage 0: host name, code, image ──Settled──▶ PID 1: host name, sizes, CRIU's gate
//!                    stays while CRIU reads, then ends ◀──end of the socket── PID 1
//! ```
//!
//! The code must be mounted where nothing inside can make it writable, so not by PID 1. Stage 0 mounts it in its own copy
//! of the root, from which the kernel passes it on to the sandbox's; since that belongs to a less privileged user
//! namespace, the mount is locked on the way: it stays read-only, nosuid and nodev. The image is mounted on stage 0's
//! side only, on a directory of which CRIU has a descriptor: it is never in the sandbox's tree.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;

use hearth_init::fields::Fields as _;
use hearth_init::{ASSIGN, Assignment, JailSpec, wire};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Signal;

use crate::enter::{self, Sizes};
use crate::error::JailError;
use crate::restore::Started;
use crate::rootfs::Incomplete;
use crate::{gate, rootfs};

/// Longest [`Settled`] in bytes: a host name of 63 and some numbers.
const MAX_SETTLED: usize = 1024;

/// What PID 1 needs to know about the function.
#[derive(Debug)]
struct Settled {
    hostname: String,
    sizes: Sizes,
    /// Device and inode of the code's directory.
    code: (u64, u64),
    network: bool,
}

hearth_init::fields_of!(Settled {
    hostname,
    sizes,
    code,
    network,
});

/// What stage 0 and PID 1 share.
pub struct Prewarmed {
    stage0: OwnedFd,
    pid1: OwnedFd,
    root: Incomplete,
}

impl Prewarmed {
    /// Before the fork of PID 1.
    pub fn new(root: Incomplete) -> Result<Self, JailError> {
        let (stage0, pid1) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|errno| JailError::Control(errno.into()))?;
        Ok(Self { stage0, pid1, root })
    }

    /// PID 1's side.
    pub fn inside(self) -> Inside {
        Inside(self.pid1)
    }

    /// Stage 0's side: waits for the function, and prepares everything that takes the host's root. Returns when it is of
    /// no use any more; that is all the news there is when PID 1 or the server is gone.
    pub fn serve(self, control: &OwnedFd, spec: &JailSpec) -> Result<(), JailError> {
        let Self { stage0, pid1, root } = self;
        drop(pid1);
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(JailError::privileges("dying with the server"))?;
        if wait_for(control, &stage0).map_err(JailError::Control)? != Woken::First {
            return Ok(());
        }
        let Some(function) = receive_function(control)? else {
            return Ok(());
        };
        let (Some(dir), Some(restore)) = (&spec.criu_dir, &function.restore) else {
            return Err(JailError::Spec(
                "a pre-warmed sandbox needs an image".into(),
            ));
        };
        let code = rootfs::complete(spec, &function, &root)?;
        drop(root);
        let code = rustix::fs::fstat(&code).map_err(JailError::mount("looking at the code"))?;
        gate::populate(dir, &restore.images)?;
        let settled = Settled {
            sizes: Sizes::of(&function),
            hostname: function.hostname,
            code: (code.st_dev, code.st_ino),
            network: function.network,
        };
        wire::send(&stage0, &settled.to_bytes(), &[]).map_err(JailError::Control)?;
        // The image is mounted as long as this process lives.
        wire::receive(&stage0, &mut [0]).map_err(JailError::Control)?;
        Ok(())
    }
}

/// PID 1's end of the socket.
pub struct Inside(OwnedFd);

impl Inside {
    /// Waits for the function and makes the sandbox its. Returns whether it has a network, or nothing when the server or
    /// CRIU is gone, so that it never comes.
    pub fn wait(&self, criu: &Started) -> Result<Option<bool>, JailError> {
        let woken = wait_for(&self.0, &criu.socket).map_err(JailError::Control)?;
        if woken != Woken::First {
            return Ok(None);
        }
        let mut bytes = [0; MAX_SETTLED];
        let (length, _) = wire::receive(&self.0, &mut bytes).map_err(JailError::Control)?;
        if length == 0 {
            return Ok(None);
        }
        let settled = Settled::from_bytes(&bytes[..length])
            .map_err(|error| JailError::Spec(error.to_string()))?;
        let code = rustix::fs::stat(format!("/{}", rootfs::CODE))
            .map_err(JailError::mount("looking at the code"))?;
        if (code.st_dev, code.st_ino) != settled.code {
            return Err(JailError::Restore(
                "the function's code did not come through to the pre-warmed sandbox".into(),
            ));
        }
        rustix::system::sethostname(settled.hostname.as_bytes())
            .map_err(JailError::privileges("the host name"))?;
        enter::settle(settled.sizes)?;
        Ok(Some(settled.network))
    }
}

#[derive(PartialEq, Eq)]
enum Woken {
    First,
    Second,
}

/// Waits until there is something to read from one of two, or it has ended. The second one's end counts more.
fn wait_for(first: &OwnedFd, second: &OwnedFd) -> io::Result<Woken> {
    let mut fds = [
        PollFd::new(first, PollFlags::IN),
        PollFd::new(second, PollFlags::IN),
    ];
    rustix::io::retry_on_intr(|| rustix::event::poll(&mut fds, None))?;
    Ok(if fds[1].revents().is_empty() {
        Woken::First
    } else {
        Woken::Second
    })
}

/// The server's order; nothing when it is gone.
fn receive_function(control: &OwnedFd) -> Result<Option<Assignment>, JailError> {
    let mut order = [0; 16];
    let (length, mut fds) = wire::receive(control, &mut order).map_err(JailError::Control)?;
    if length == 0 {
        return Ok(None);
    }
    let file = match (order[..length] == [ASSIGN], fds.pop()) {
        (true, Some(file)) if fds.is_empty() => file,
        _ => return Err(JailError::Spec("not an assignment".into())),
    };
    let mut bytes = Vec::new();
    std::fs::File::from(file)
        .read_to_end(&mut bytes)
        .map_err(JailError::Control)?;
    let function =
        Assignment::from_bytes(&bytes).map_err(|error| JailError::Spec(error.to_string()))?;
    Ok(Some(function))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC;
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a pair")
    }

    /// A file with this content, read from its beginning.
    fn file(content: &[u8]) -> OwnedFd {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(content).expect("written");
        std::io::Seek::rewind(&mut file).expect("at its beginning");
        file.into()
    }

    #[test]
    fn the_second_counts_more() {
        let ((first, ours), (second, theirs)) = (pair(), pair());
        wire::send(&ours, b"x", &[]).expect("sent");
        assert!(wait_for(&first, &second).expect("woken") == Woken::First);
        // Whether it says something or ends.
        drop(theirs);
        assert!(wait_for(&first, &second).expect("woken") == Woken::Second);
    }

    #[test]
    fn a_server_that_is_gone_sends_no_function() {
        let (control, server) = pair();
        drop(server);
        assert!(receive_function(&control).expect("no error").is_none());
    }

    #[test]
    fn only_an_assignment_is_a_function() {
        let (control, server) = pair();
        let garbage = file(b"garbage");
        let wrong: [(&[u8], usize); 4] =
            [(b"?", 1), (&[ASSIGN, 0], 1), (&[ASSIGN], 0), (&[ASSIGN], 2)];
        for (order, descriptors) in wrong {
            wire::send(&server, order, &vec![garbage.as_fd(); descriptors]).expect("sent");
            let refused = receive_function(&control).expect_err("not an assignment");
            assert!(
                refused.to_string().contains("not an assignment"),
                "{refused}"
            );
        }
        // The right order, about something else.
        wire::send(&server, &[ASSIGN], &[garbage.as_fd()]).expect("sent");
        let refused = receive_function(&control).expect_err("malformed");
        assert!(matches!(refused, JailError::Spec(_)), "{refused}");
    }

    #[test]
    fn what_pid_1_learns_fits_its_buffer() {
        let settled = Settled {
            hostname: "h".repeat(63),
            sizes: Sizes::from_bytes(&(u64::MAX, u64::MAX).to_bytes()).expect("two numbers"),
            code: (u64::MAX, u64::MAX),
            network: true,
        };
        let bytes = settled.to_bytes();
        assert!(bytes.len() <= MAX_SETTLED, "{} bytes", bytes.len());
        let read = Settled::from_bytes(&bytes).expect("as written");
        assert_eq!((read.hostname, read.code), (settled.hostname, settled.code));
        assert!(Settled::from_bytes(&bytes[..bytes.len() - 1]).is_err());
    }
}
