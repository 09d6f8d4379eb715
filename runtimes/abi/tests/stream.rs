//! Messages of many times the ring's size, through real memfds and bells: between threads with mappings of their
//! own, and between processes.
#![cfg(not(loom))]

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::process::Command;
use std::thread;

use hearth_abi::layout::MIN_RING_BYTES;
use hearth_abi::{AbiError, Bell, Blocking, Kind, Message, Region};
use rustix::io::{FdFlags, fcntl_setfd};

/// Set in the second process: its descriptors, in [`worker_from_env`]'s order.
const WORKER_FDS: &str = "HEARTH_ABI_TEST_WORKER_FDS";

const ID: [u8; 16] = *b"0123456789abcdef";

/// Several MiB that do not repeat with the ring's size, and are no multiple of it.
fn payload(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ bytes as u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(bytes).collect()
}

/// Sizes of the requests that are sent to and fro: none, one frame, about the ring, many rings.
const SIZES: [usize; 6] = [0, 1, 1728, 4096, 70_001, 3_333_333];

/// Receives a request and sends it back, until one is empty and of the kind that ends it.
fn echo(mut worker: Blocking) -> Result<(), AbiError> {
    let mut request = Vec::new();
    loop {
        let message = worker.recv_message(&mut request, usize::MAX)?;
        if message.kind == Kind::RequestHead {
            return Ok(());
        }
        worker.send_message(Kind::ResponseResult, &message.id, &request)?;
    }
}

/// Sends every size and checks that it comes back.
fn ask(mut host: Blocking) -> Result<(), AbiError> {
    let mut response = Vec::new();
    for size in SIZES {
        let request = payload(size);
        host.send_message(Kind::RequestEvent, &ID, &request)?;
        let message = host.recv_message(&mut response, request.len())?;
        assert_eq!(
            message,
            Message {
                kind: Kind::ResponseResult,
                id: ID
            }
        );
        assert!(response == request, "{size} bytes came back changed");
    }
    host.send_message(Kind::RequestHead, &ID, &[])
}

/// A channel with its two bells, each as an end for the host and one for the worker.
fn channel(pairs: bool) -> (Blocking, OwnedFd, Bell, Bell) {
    let (region, fd) = Region::create(MIN_RING_BYTES).expect("a region");
    let bell = || {
        if pairs {
            return Bell::pair().expect("a pair");
        }
        let bell = Bell::new().expect("an eventfd");
        let other = bell.as_fd().try_clone_to_owned().expect("a descriptor");
        (bell, Bell::from(other))
    };
    let ((ring_worker, worker_sleeps), (ring_host, host_sleeps)) = (bell(), bell());
    (
        Blocking::new(region.host(), host_sleeps, ring_worker),
        fd,
        worker_sleeps,
        ring_host,
    )
}

#[test]
fn threads_stream_messages_larger_than_the_ring() {
    for pairs in [false, true] {
        let (host, fd, worker_sleeps, ring_host) = channel(pairs);
        let worker = Region::attach(fd.as_fd()).expect("the region").worker();
        let worker = Blocking::new(worker, worker_sleeps, ring_host);
        thread::scope(|scope| {
            let worker = scope.spawn(|| echo(worker));
            ask(host).expect("echoes");
            worker.join().expect("no panic").expect("no error");
        });
    }
}

#[test]
fn processes_stream_messages_larger_than_the_ring() {
    for pairs in [false, true] {
        let (host, fd, worker_sleeps, ring_host) = channel(pairs);
        let fds = [fd, worker_sleeps.into(), ring_host.into()];
        let numbers: Vec<String> = fds.iter().map(|fd| fd.as_raw_fd().to_string()).collect();
        for fd in &fds {
            fcntl_setfd(fd, FdFlags::empty()).expect("an inheritable descriptor");
        }
        let mut worker = Command::new(std::env::current_exe().expect("this binary"))
            .args(["--exact", "worker_process", "--ignored", "--nocapture"])
            .env(WORKER_FDS, numbers.join(" "))
            .spawn()
            .expect("a second process");
        drop(fds);
        ask(host).expect("echoes");
        assert!(worker.wait().expect("its end").success());
    }
}

/// Not a test of its own: what [`processes_stream_messages_larger_than_the_ring`] starts.
#[test]
#[ignore = "the second process of another test"]
fn worker_process() {
    let Some(worker) = worker_from_env() else {
        return;
    };
    echo(worker).expect("no error");
}

fn worker_from_env() -> Option<Blocking> {
    let numbers = std::env::var(WORKER_FDS).ok()?;
    let mut fds = numbers.split(' ').map(|number| {
        let number: RawFd = number.parse().expect("a descriptor's number");
        // SAFETY: the parent process left this descriptor open for this process and named it in its environment;
        // nothing else in this process knows of it.
        unsafe { OwnedFd::from_raw_fd(number) }
    });
    let (region, own, peer) = (fds.next()?, fds.next()?, fds.next()?);
    let region = Region::attach(region.as_fd()).expect("the region");
    Some(Blocking::new(
        region.worker(),
        Bell::from(own),
        Bell::from(peer),
    ))
}

#[test]
fn a_message_beyond_the_limit_is_dropped_and_the_next_one_arrives() {
    let (mut host, fd, worker_sleeps, ring_host) = channel(true);
    let worker = Region::attach(fd.as_fd()).expect("the region").worker();
    let mut worker = Blocking::new(worker, worker_sleeps, ring_host);
    thread::scope(|scope| {
        scope.spawn(move || {
            worker
                .send_message(Kind::ResponseResult, &ID, &payload(100_000))
                .expect("sent");
            worker
                .send_message(Kind::ResponseError, &ID, b"second")
                .expect("sent");
        });
        let mut into = Vec::new();
        let error = host.recv_message(&mut into, 9_999).expect_err("too large");
        assert!(
            matches!(error, AbiError::MessageTooLarge { limit: 9_999 }),
            "{error}"
        );
        assert!(into.is_empty() && into.capacity() < 100_000);
        assert_eq!(
            host.recv_message(&mut into, 6).expect("the next").kind,
            Kind::ResponseError
        );
        assert_eq!(into, b"second");
    });
}

#[test]
fn the_peers_death_ends_a_sleep() {
    let (mut host, _fd, worker_sleeps, ring_host) = channel(true);
    drop((worker_sleeps, ring_host));
    let error = host
        .recv_message(&mut Vec::new(), 1)
        .expect_err("nobody there");
    assert!(matches!(error, AbiError::PeerGone), "{error}");
}
