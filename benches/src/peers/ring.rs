//! Hearth's shared-memory ring between two processes, which both spin or both sleep while they wait.

use std::hint::spin_loop;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;

use hearth_abi::layout::DEFAULT_RING_BYTES;
use hearth_abi::{Bell, Blocking, Endpoint, Flags, Kind, Region};

use super::PAYLOAD;
use crate::process::Program;

/// The peer that looks at its ring all the time.
pub const SPINNING: &str = "ring-spinning";
/// The peer that sleeps on its bell.
pub const SLEEPING: &str = "ring-sleeping";

/// Any id will do.
const ID: [u8; 16] = [7; 16];

/// This side of a ring whose other side spins.
pub struct Spinning {
    endpoint: Endpoint,
    _peer: Program,
}

impl Spinning {
    /// Starts the other side.
    pub fn start() -> anyhow::Result<Self> {
        let (region, fd) = Region::create(DEFAULT_RING_BYTES)?;
        // The region and both bells travel as the three standard streams, which every process can reach.
        let mut command = super::command(SPINNING)?;
        command.stdin(Stdio::from(fd));
        let peer = Program::start_with(&mut command)?;
        Ok(Self {
            endpoint: region.host(),
            _peer: peer,
        })
    }

    /// A round trip; `copy` holds what came back.
    pub fn echo(&mut self, payload: &[u8], copy: &mut Vec<u8>) -> anyhow::Result<()> {
        send(&mut self.endpoint, Kind::RequestEvent, payload)?;
        receive(&mut self.endpoint, copy)
    }
}

/// This side of a ring whose both sides sleep while they wait.
pub struct Sleeping {
    channel: Blocking,
    _peer: Program,
}

impl Sleeping {
    /// Starts the other side.
    pub fn start() -> anyhow::Result<Self> {
        let (region, fd) = Region::create(DEFAULT_RING_BYTES)?;
        let (own, peers) = (Bell::new()?, Bell::new()?);
        let mut command = super::command(SLEEPING)?;
        command
            .stdin(Stdio::from(fd))
            .stdout(Stdio::from(copy_of(&peers)?))
            .stderr(Stdio::from(copy_of(&own)?));
        let peer = Program::start_with(&mut command)?;
        Ok(Self {
            channel: Blocking::new(region.host(), own, peers),
            _peer: peer,
        })
    }

    /// A round trip; `copy` holds what came back.
    pub fn echo(&mut self, payload: &[u8], copy: &mut Vec<u8>) -> anyhow::Result<()> {
        self.channel
            .send_message(Kind::RequestEvent, &ID, payload)?;
        self.channel.recv_message(copy, PAYLOAD)?;
        Ok(())
    }
}

/// Is the other side until it is killed.
pub fn serve(spinning: bool) -> anyhow::Result<()> {
    let mut endpoint = Region::attach(std::io::stdin().as_fd())?.worker();
    let mut copy = Vec::with_capacity(PAYLOAD);
    if spinning {
        loop {
            receive(&mut endpoint, &mut copy)?;
            send(&mut endpoint, Kind::ResponseResult, &copy)?;
        }
    }
    let (own, peers) = (
        copy_of(&std::io::stdout())?.into(),
        copy_of(&std::io::stderr())?.into(),
    );
    let mut channel = Blocking::new(endpoint, own, peers);
    loop {
        channel.recv_message(&mut copy, PAYLOAD)?;
        channel.send_message(Kind::ResponseResult, &ID, &copy)?;
    }
}

fn copy_of(fd: &impl AsFd) -> std::io::Result<OwnedFd> {
    fd.as_fd().try_clone_to_owned()
}

/// One frame out, as a busy side sends it.
pub fn send(endpoint: &mut Endpoint, kind: Kind, payload: &[u8]) -> anyhow::Result<()> {
    let sent = endpoint.tx.try_send(kind, Flags::NONE, &ID, payload)?;
    anyhow::ensure!(sent, "an empty ring is full");
    std::hint::black_box(endpoint.tx.bell_needed());
    Ok(())
}

/// One frame in, looking until it is there.
pub fn receive(endpoint: &mut Endpoint, copy: &mut Vec<u8>) -> anyhow::Result<()> {
    copy.clear();
    let mut waited = false;
    let mut frame = loop {
        match endpoint.rx.try_recv()? {
            Some(frame) => break frame,
            None if waited => spin_loop(),
            None => {
                endpoint.tx.warm_up();
                waited = true;
            }
        }
    };
    frame.copy_to(copy)?;
    frame.consume();
    std::hint::black_box(endpoint.rx.bell_needed());
    Ok(())
}
