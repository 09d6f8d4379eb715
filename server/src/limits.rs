//! Limits on what a client may use of the server, and for how long. Each limit is a constant with its reason;
//! `server/docs/limits.md` lists them with the tests that hold them.
//!
//! A client cannot extend how long the server waits for it: every wait has a budget that single bytes do not renew
//! ([`Pace`](pace::Pace)), and all resources held for it are counted.

pub mod budget;
pub mod pace;

use std::net::{IpAddr, Ipv6Addr};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Time for a request's head, from its first byte (or from the connection's begin) to its last. Heads are a few KiB: the
/// slowest honest link needs a second or two, and a round trip or two for lost packets.
pub const HEAD_TIME: Duration = Duration::from_secs(15);
/// Bytes of a request's head. Cookies and tokens fill a tenth of it; it bounds what a connection holds before anybody
/// was authenticated.
pub const HEAD_BYTES: u64 = 64 << 10;
/// How long a connection without a request is kept for the next one. Longer than the 60 s that load balancers keep
/// theirs, so that it is they who close and no request meets a closing connection.
pub const IDLE_TIME: Duration = Duration::from_secs(75);

/// How far a body may fall behind [`BODY_RATE`] before it is given up: survives a change of cells or a sleeping
/// laptop's wake-up, and is the longest pause of a body.
pub const BODY_SLACK: Duration = Duration::from_secs(20);
/// Minimum average bytes per second of a request's body: 32 kbit/s, less than any link used for uploads. Also what
/// bounds the time of a whole body by its size: 6 MiB take 26 min at most, a form of 16 KiB 24 s.
pub const BODY_RATE: u64 = 4 << 10;
/// Time that all waiting for one body may take together, whatever its size. The largest upload, 256 MiB, takes 36 min
/// at 1 Mbit/s.
pub const BODY_TIME: Duration = Duration::from_secs(3600);

/// Bytes of a body that are read before an instance is leased, since a slow client must not hold one up. Most bodies are
/// whole by then.
pub const BODY_AHEAD: usize = 1 << 20;
/// The same for all bodies together, beyond [`BODY_SHARE`] each. Requests beyond it are rejected with a retry.
pub const BODIES_AHEAD: usize = 256 << 20;
/// What every body may have read ahead, whatever the others hold: forms and JSON always pass.
pub const BODY_SHARE: usize = 64 << 10;

/// How far the reading of an answer may fall behind [`WRITE_RATE`]: what the kernel has taken for the client (some MiB)
/// is not counted, so that only a client that has stopped reading comes here.
pub const WRITE_SLACK: Duration = Duration::from_secs(30);
/// Minimum average bytes per second that a client reads of a response while more is waiting: 64 kbit/s.
pub const WRITE_RATE: u64 = 8 << 10;

/// Most connections, however many descriptors there are: bounds the memory that their buffers take, and is far above
/// what one host's functions answer.
pub const MAX_CONNECTIONS: usize = 8192;
/// Descriptors that connections never get: the database, templates and instances of a small node. Of what there is
/// beyond them connections get half, since each request may need an instance, whose channel takes some.
pub const RESERVED_DESCRIPTORS: u64 = 128;
/// Minimum number of connections, on a host with a tiny descriptor limit.
pub const MIN_CONNECTIONS: usize = 16;
/// One address, or one /64 of IPv6 (what a single customer is given), gets this part of all connections.
pub const ADDRESS_SHARE: usize = 4;

/// Bytes of an answer that are taken from the instance ahead of a client that reads slowly. Larger than most pages, so
/// that their instance is free at once; past it the function waits, until its time is up.
pub const ANSWER_AHEAD: usize = 4 << 20;
/// The same of all answers together. Past it an answer is taken ahead by [`ANSWER_SHARE`] only.
pub const ANSWERS_AHEAD: usize = 256 << 20;
/// What every answer may be ahead, whatever the others hold: one ring's content.
pub const ANSWER_SHARE: usize = 256 << 10;

/// Bytes of disk that all uploads of code take together, from their arrival until they are unpacked: eight of the largest.
pub const UPLOADS_ON_DISK: usize = 2 << 30;
/// Bytes of memory that they take: source text, and what a JSON body or a form holds beside an archive.
pub const UPLOADS_IN_MEMORY: usize = 256 << 20;
/// An upload up to this size stays in memory and is not counted, so that deploying a source file is always possible. Also
/// what a larger one gathers before it writes.
pub const UPLOAD_FREE: usize = 256 << 10;

/// What a drain may take after its deadline, for the history of what was cut off.
pub const CUT_OFF: Duration = Duration::from_secs(2);

/// The limits in force: the constants above, unless a test lowers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// [`HEAD_TIME`].
    pub head_time: Duration,
    /// [`IDLE_TIME`].
    pub idle_time: Duration,
    /// [`BODY_SLACK`].
    pub body_slack: Duration,
    /// [`BODY_RATE`].
    pub body_rate: u64,
    /// [`BODY_TIME`].
    pub body_time: Duration,
    /// [`WRITE_SLACK`].
    pub write_slack: Duration,
    /// [`WRITE_RATE`].
    pub write_rate: u64,
    /// [`MAX_CONNECTIONS`], or what the descriptors allow.
    pub connections: usize,
    /// [`ADDRESS_SHARE`] of them.
    pub connections_of_one: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_time: HEAD_TIME,
            idle_time: IDLE_TIME,
            body_slack: BODY_SLACK,
            body_rate: BODY_RATE,
            body_time: BODY_TIME,
            write_slack: WRITE_SLACK,
            write_rate: WRITE_RATE,
            connections: MAX_CONNECTIONS,
            connections_of_one: MAX_CONNECTIONS / ADDRESS_SHARE,
        }
    }
}

static IN_FORCE: OnceLock<Limits> = OnceLock::new();

impl Limits {
    /// Those in force.
    pub fn get() -> &'static Self {
        IN_FORCE.get_or_init(Self::default)
    }

    /// Puts limits in force, once, before the first connection.
    pub fn set(limits: Self) {
        // Must be set once: connections use the first value.
        let _ = IN_FORCE.set(limits);
    }

    /// Fits the number of connections to the descriptors that this process may open, of which it first takes all it is
    /// allowed (the soft limit becomes the hard one).
    pub fn for_this_process() -> Self {
        let limit = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: limit.maximum,
            ..limit
        };
        let most = match setrlimit(Resource::Nofile, raised) {
            Ok(()) => limit.maximum,
            Err(error) => {
                tracing::warn!(%error, "cannot raise the limit on open files");
                limit.current
            }
        };
        Self::default().with_connections(connections_for(most))
    }

    fn with_connections(self, most: usize) -> Self {
        Self {
            connections: most,
            connections_of_one: (most / ADDRESS_SHARE).max(1),
            ..self
        }
    }

    /// Lowers limits for a test: `name=value` pairs, separated by commas; times in milliseconds.
    ///
    /// # Errors
    /// What is not understood.
    pub fn lowered(mut self, text: &str) -> Result<Self, String> {
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let number: u64 = value
                .parse()
                .map_err(|_| format!("{pair:?} is not name=number"))?;
            let time = Duration::from_millis(number);
            let count = usize::try_from(number).unwrap_or(usize::MAX);
            match name {
                "head_time" => self.head_time = time,
                "idle_time" => self.idle_time = time,
                "body_slack" => self.body_slack = time,
                "body_rate" => self.body_rate = number.max(1),
                "body_time" => self.body_time = time,
                "write_slack" => self.write_slack = time,
                "write_rate" => self.write_rate = number.max(1),
                "connections" => self = self.with_connections(count),
                "connections_of_one" => self.connections_of_one = count,
                _ => return Err(format!("there is no limit {name:?}")),
            }
        }
        Ok(self)
    }
}

/// Connections for a process that may open this many descriptors; None is no limit.
fn connections_for(descriptors: Option<u64>) -> usize {
    let Some(descriptors) = descriptors else {
        return MAX_CONNECTIONS;
    };
    let half = descriptors.saturating_sub(RESERVED_DESCRIPTORS) / 2;
    usize::try_from(half)
        .unwrap_or(usize::MAX)
        .clamp(MIN_CONNECTIONS, MAX_CONNECTIONS)
}

/// Whose connections are counted together: an IPv4 address, or the /64 of an IPv6 one.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let prefix = u128::from(v6) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(prefix))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_engine() {
        for descriptors in [256, 300, 1024, 4096, 20_000, 1 << 20] {
            let connections = connections_for(Some(descriptors)) as u64;
            assert!(connections >= 16, "{descriptors}");
            assert!(
                connections + RESERVED_DESCRIPTORS <= descriptors,
                "{descriptors}"
            );
        }
        assert_eq!(connections_for(Some(1 << 20)), MAX_CONNECTIONS);
        assert_eq!(connections_for(None), MAX_CONNECTIONS);
        assert_eq!(connections_for(Some(10)), MIN_CONNECTIONS);
    }

    #[test]
    fn a_64_of_ipv6_is_one_network() {
        let of = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2:ffff::1"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }

    #[test]
    fn tests_can_lower_limits_and_typos_are_told() {
        let limits = Limits::default()
            .lowered("head_time=200,connections=40,body_rate=1")
            .expect("three limits");
        assert_eq!(limits.head_time, Duration::from_millis(200));
        assert_eq!((limits.connections, limits.connections_of_one), (40, 10));
        assert_eq!(Limits::default().lowered(""), Ok(Limits::default()));
        for wrong in ["head_time", "head_time=x", "nothing=1"] {
            assert!(Limits::default().lowered(wrong).is_err(), "{wrong}");
        }
    }
}
