//! What to send, when, and within which limits.

mod check;

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Most requests of a run: each leaves a sample of some 90 bytes in memory until the run ends.
pub const REQUESTS_MAX: u64 = 5_000_000;

/// Most connections at a time: a descriptor each, and a burst of 500 to two endpoints at once fits.
pub const CONNECTIONS_MAX: usize = 1_000;

/// Highest rate of an open loop, per second; more than one thread can send.
pub const RATE_MAX: f64 = 500_000.0;

/// Longest run: 24 hours, which keeps a forgotten one from running for ever.
pub const DURATION_MAX: Duration = Duration::from_hours(24);

/// Longest time limit of a request: STeLLAR's 15 minutes.
pub const TIMEOUT_MAX: Duration = Duration::from_mins(15);

/// Longest body of a request, which is kept in memory: the largest payload that STeLLAR sends inline is 6 MB.
pub const BODY_MAX: usize = 8 << 20;

/// Most bytes of an answer that a sample keeps.
pub const CAPTURE_MAX: usize = 64 << 10;

/// Most bytes that all samples keep of answers, in memory until the run ends.
pub const CAPTURED_MAX: u64 = 1 << 30;

/// A run of the load generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The requests to choose from.
    pub requests: Vec<Request>,
    /// When they are sent.
    pub schedule: Schedule,
    /// Most connections at a time.
    pub connections: usize,
    /// Most idle connections that are kept to be used again; 0 opens one for each request.
    pub keep_alive: usize,
    /// Time limit of a request in ms, from sending to the last byte.
    pub timeout_ms: u64,
    /// How many bytes of an answer's body each sample keeps.
    #[serde(default)]
    pub capture_bytes: usize,
    /// The run is given up when more requests than this have failed.
    #[serde(default)]
    pub faults_max: Option<u64>,
    /// The processor to run on.
    #[serde(default)]
    pub processor: Option<usize>,
    /// Whose certificates `https` addresses may have.
    #[serde(default)]
    pub trust: Trust,
}

/// Whose certificates are believed: those that the system's certificates vouch for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Trust {
    /// Anybody's.
    pub insecure: bool,
    /// Further certificates, as PEM.
    pub ca_pem: Option<String>,
}

/// A request that is put together once and sent many times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// `GET`, `POST` or `PUT`.
    pub method: String,
    /// An `http` or `https` address with a host.
    pub url: String,
    /// Further headers.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(default)]
    pub body: String,
}

/// When requests are sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// Each connection sends its next request when it has the answer to the last. Requests are taken in turn.
    Closed {
        /// Stops sending after so long, in ms.
        duration_ms: Option<u64>,
        /// Stops after so many requests.
        count: Option<u64>,
    },
    /// Requests are sent at their times, whatever has become of those before. Requests are taken in turn.
    Open {
        /// Their times.
        arrivals: Arrivals,
        /// Stops sending after so long, in ms.
        duration_ms: Option<u64>,
        /// Stops after so many requests.
        count: Option<u64>,
    },
    /// Many requests at once, and the next as many when all are answered.
    Bursts {
        /// One after the other.
        rounds: Vec<Round>,
    },
}

/// The times of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrivals {
    /// The same time between any two.
    Fixed {
        /// Requests per second.
        rate: f64,
    },
    /// Exponentially distributed times between them: a Poisson process.
    Exponential {
        /// Requests per second in the mean.
        rate: f64,
        /// Of the random numbers.
        seed: u64,
    },
    /// A rate that grows in steps, evenly spaced within each.
    Step {
        /// Requests per second at first.
        from: f64,
        /// How many more per second in each step.
        by: f64,
        /// The highest rate.
        to: f64,
        /// How long a step takes, in ms.
        every_ms: u64,
    },
}

/// A pause and the bursts that follow it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// The pause, in ms, from the last answer of the round before.
    pub pause_ms: u64,
    /// One after the other, each when the one before is answered.
    pub bursts: Vec<Burst>,
}

/// Requests that are sent at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Which of the plan's requests.
    pub request: usize,
    /// How many of it.
    pub size: usize,
}

/// Why a plan is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{field}: {rule}")]
pub struct PlanError {
    /// The field.
    pub field: &'static str,
    /// What would be right.
    pub rule: String,
}
