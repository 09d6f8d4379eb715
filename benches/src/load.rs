//! Load: a blocking thread for each connection, each of which sends its next request when it has its answer.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::client::Connection;
use crate::results::Samples;

/// Stack of a client's thread: it holds no buffers.
const STACK: usize = 128 * 1024;

/// What one turn, or several together, have shown.
#[derive(Debug, Default)]
pub struct Observed {
    /// Each request's own latency.
    pub samples: Samples,
    /// How long the turns took.
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

/// Requests at `connections` connections for so long. Connections are opened before, with one request each that does not
/// count. A request that is under way when the time is over is waited for and counts.
pub fn drive(
    address: SocketAddr,
    request: &[u8],
    connections: usize,
    time: Duration,
) -> anyhow::Result<Observed> {
    let mut open = Vec::with_capacity(connections);
    for _ in 0..connections {
        let mut connection = Connection::open(address)?;
        connection.exchange(request)?.good()?;
        open.push(connection);
    }
    let begun = Instant::now();
    let until = begun + time;
    let samples = std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(connections);
        for connection in open {
            let thread = std::thread::Builder::new().stack_size(STACK);
            threads.push(thread.spawn_scoped(scope, move || client(connection, request, until))?);
        }
        let mut all = Samples::default();
        for thread in threads {
            let samples = thread
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

fn client(mut connection: Connection, request: &[u8], until: Instant) -> anyhow::Result<Samples> {
    let mut samples = Samples::default();
    loop {
        let begun = Instant::now();
        if begun >= until {
            return Ok(samples);
        }
        let answer = connection.exchange(request)?;
        samples.push(begun.elapsed());
        answer.good()?;
    }
}
