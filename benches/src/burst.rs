//! Many requests at once from one thread, by epoll: as many threads as requests would compete with what is measured.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::client::{head_end, parse};
use crate::results::Samples;

/// Room for an answer: those of bursts are small.
const ROOM: usize = 16 * 1024;
/// Longest time without any answer.
const SILENCE: Duration = Duration::from_secs(60);
/// How long the server gets to accept all connections before the requests come.
const ACCEPTING: Duration = Duration::from_millis(50);

/// One request under way.
struct Pending {
    stream: TcpStream,
    begun: Instant,
    buffer: Vec<u8>,
    took: Option<Duration>,
    rung: String,
}

/// What a burst has shown.
pub struct Burst {
    /// Each request's own latency, from its own first byte out.
    pub samples: Samples,
    /// From the first byte out to the last answer.
    pub took: Duration,
    /// How many found an instance ready.
    pub warm: usize,
}

/// Sends `count` requests at once, each on a connection of its own that is open already, and waits for all answers.
pub fn burst(address: SocketAddr, request: &[u8], count: usize) -> anyhow::Result<Burst> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut pending = Vec::with_capacity(count);
    for number in 0..count {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        epoll::add(
            &epoll,
            &stream,
            EventData::new_u64(number as u64),
            EventFlags::IN,
        )?;
        pending.push(Pending {
            stream,
            begun: Instant::now(),
            buffer: Vec::with_capacity(ROOM),
            took: None,
            rung: String::new(),
        });
    }
    std::thread::sleep(ACCEPTING);
    let begun = Instant::now();
    for one in &mut pending {
        one.begun = Instant::now();
        // A request fits into an empty socket's buffer.
        one.stream.write_all(request)?;
    }
    let mut open = count;
    let mut events = Vec::with_capacity(count);
    let silence = Timespec::try_from(SILENCE)?;
    while open > 0 {
        events.clear();
        let ready = epoll::wait(
            &epoll,
            rustix::buffer::spare_capacity(&mut events),
            Some(&silence),
        );
        match ready {
            Ok(0) => bail!("{open} of {count} requests got no answer"),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        }
        for event in &events {
            let one = pending
                .get_mut(event.data.u64() as usize)
                .context("an event of nobody")?;
            if one.took.is_none() && one.read()? {
                open -= 1;
            }
        }
    }
    let took = begun.elapsed();
    let mut samples = Samples::default();
    pending
        .iter()
        .filter_map(|one| one.took)
        .for_each(|took| samples.push(took));
    let warm = pending.iter().filter(|one| one.rung == "warm").count();
    Ok(Burst {
        samples,
        took,
        warm,
    })
}

impl Pending {
    /// Reads what is there; whether the answer is complete.
    fn read(&mut self) -> anyhow::Result<bool> {
        let mut chunk = [0; ROOM];
        match self.stream.read(&mut chunk) {
            Ok(0) => bail!("the server closed a connection"),
            Ok(read) => self.buffer.extend_from_slice(&chunk[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let Some((start, length)) = head_end(&self.buffer)? else {
            return Ok(false);
        };
        if self.buffer.len() < start + length {
            return Ok(false);
        }
        self.took = Some(self.begun.elapsed());
        let answer = parse(&self.buffer, start)?;
        answer.good()?;
        let rung = answer.header("x-hearth-start").unwrap_or_default();
        self.rung = rung.to_owned();
        Ok(true)
    }
}
