//! How long the broker waits for a function and for a host. Every wait has one of these deadlines.

use std::time::Duration;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// A TLS handshake, on either side.
    pub handshake: Duration,
    /// The head of a request, from the end of the one before: how long an idle connection is kept.
    pub request_head: Duration,
    /// Each piece of a request's body.
    pub request_body: Duration,
    /// A connection to each address of a host.
    pub connect: Duration,
    /// A response's head, from the start of its request.
    pub response_head: Duration,
    /// Each piece of a response's body.
    pub response_body: Duration,
    /// The other side's reading of what was written to it.
    pub write: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            request_head: Duration::from_secs(75),
            request_body: Duration::from_secs(60),
            connect: Duration::from_secs(5),
            // As long as a function may run.
            response_head: Duration::from_secs(900),
            response_body: Duration::from_secs(900),
            write: Duration::from_secs(60),
        }
    }
}
