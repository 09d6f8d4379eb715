//! Closed-loop load: each connection sends its next request after the response to the last one.

use std::net::SocketAddr;
use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

use hearth_host::scheduling::{Scheduling, schedule};
use rustix::thread::gettid;

use crate::client::Connection;
use crate::crowd;
use crate::results::Samples;

/// What one turn, or several together, have shown.
#[derive(Debug, Default)]
pub struct Observed {
    /// Each request's own latency.
    pub samples: Samples,
    /// How long the rounds took.
    pub took: Duration,
}

impl Observed {
    /// Requests per second.
    pub fn rate(&self) -> f64 {
        self.samples.len() as f64 / self.took.as_secs_f64()
    }

    /// Adds a turn.
    pub fn extend(&mut self, turn: &Self) {
        self.samples.extend(&turn.samples);
        self.took += turn.took;
    }
}

/// How the load's threads get processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// Like the servers' do.
    Ordinary,
    /// Before all others, as on a host of its own: what is measured are the servers, and not how long it waits itself.
    RealTime,
}

/// Requests at `connections` connections for so long, from half as many threads as there are processors. Connections are
/// opened before, with one request each that does not count. A request that is under way when the time is over is waited
/// for and counts.
pub fn drive(
    address: SocketAddr,
    request: &[u8],
    connections: usize,
    time: Duration,
) -> anyhow::Result<Observed> {
    drive_as(Client::Ordinary, address, request, connections, time)
}

/// The same from threads that get processors in this way.
pub fn drive_as(
    scheduled: Client,
    address: SocketAddr,
    request: &[u8],
    connections: usize,
    time: Duration,
) -> anyhow::Result<Observed> {
    drive_steps(scheduled, address, &[request], connections, time)
}

/// The same with requests that each connection sends one after the other, as a client does that needs them all: they count as
/// one, from the first one's beginning to the last one's end.
pub fn drive_steps(
    scheduled: Client,
    address: SocketAddr,
    steps: &[&[u8]],
    connections: usize,
    time: Duration,
) -> anyhow::Result<Observed> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get) / 2;
    let threads = threads.clamp(1, connections.max(1));
    let mut shares: Vec<Vec<Connection>> = (0..threads).map(|_| Vec::new()).collect();
    for number in 0..connections {
        let mut connection = Connection::open(address)?;
        for request in steps {
            connection.exchange(request)?.good()?;
        }
        shares[number % threads].push(connection);
    }
    let begun = Instant::now();
    let until = begun + time;
    let samples = thread::scope(|scope| {
        let clients: Vec<_> = shares
            .into_iter()
            .map(|share| {
                scope.spawn(move || {
                    if scheduled == Client::RealTime {
                        schedule(gettid(), Scheduling::RealTime)?;
                    }
                    client(share, steps, until)
                })
            })
            .collect();
        let mut all = Samples::default();
        for client in clients {
            let samples = client
                .join()
                .map_err(|_| anyhow::anyhow!("a client panicked"))??;
            all.extend(&samples);
        }
        anyhow::Ok(all)
    })?;
    Ok(Observed {
        samples,
        took: begun.elapsed(),
    })
}

/// One thread's part of it.
fn client(mut share: Vec<Connection>, steps: &[&[u8]], until: Instant) -> anyhow::Result<Samples> {
    let mut samples = Samples::default();
    // One by itself has nobody to choose from, and just waits.
    if let [connection] = share.as_mut_slice() {
        loop {
            // One at least: on a busy host the time may be over before this thread gets a processor.
            let begun = Instant::now();
            for request in steps {
                connection.exchange(request)?.good()?;
            }
            let ended = Instant::now();
            samples.push(ended - begun);
            if ended >= until {
                return Ok(samples);
            }
        }
    }
    crowd::exchange_steps(share, steps, |answered| {
        samples.push(answered.ended - answered.begun);
        answered.answer.good()?;
        Ok(answered.ended < until)
    })?;
    Ok(samples)
}
