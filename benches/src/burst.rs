//! Many requests at once, each on a connection of its own.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::client::Connection;
use crate::crowd;
use crate::results::Samples;

/// How long the server gets to accept all connections before the requests come.
const ACCEPTING: Duration = Duration::from_millis(50);

/// What a burst has shown.
pub struct Burst {
    /// Each request's own latency, from its own first byte out.
    pub samples: Samples,
    /// From the first byte out to the last answer.
    pub took: Duration,
    /// How many found an instance ready.
    pub warm: usize,
}

/// Sends `count` requests at once, on connections that are open already, and waits for all answers.
pub fn burst(address: SocketAddr, request: &[u8], count: usize) -> anyhow::Result<Burst> {
    let connections = (0..count).map(|_| Connection::open(address));
    let connections = connections.collect::<anyhow::Result<Vec<_>>>()?;
    std::thread::sleep(ACCEPTING);
    let begun = Instant::now();
    let (mut samples, mut warm) = (Samples::default(), 0);
    crowd::exchange(connections, request, |answered| {
        samples.push(answered.ended - answered.begun);
        answered.answer.good()?;
        if answered.answer.header("x-hearth-start") == Some("warm") {
            warm += 1;
        }
        Ok(false)
    })?;
    Ok(Burst {
        samples,
        took: begun.elapsed(),
        warm,
    })
}
