//! Answers one query, from reading it to its reply.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_proto::op::ResponseCode;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answer::Answer;
use super::cache::Cache;
use super::question::{Kind, Question};
use super::rate::Bucket;
use super::upstream::Upstream;

/// Concurrent queries of one sandbox.
const IN_FLIGHT_MAX: usize = 32;
/// Queries per second, and in a burst, that a sandbox may send.
const QUESTIONS: (u32, u32) = (200, 400);
/// Queries per second, and in a burst, that are forwarded to a DNS server. Each carries some 200 bytes of the
/// function's choice to whoever runs the name servers: this bounds a tunnel through an allowed wildcard.
const UPSTREAM: (u32, u32) = (20, 100);
/// Longest TTL that is respected: an address stays reachable for little longer than its name resolves to it.
const TTL_MAX: Duration = Duration::from_secs(300);
/// TTL of `localhost`, which never changes.
const LOCALHOST_TTL: Duration = Duration::from_secs(3600);
/// For how long the broker's address is told; it changes with the sandbox only.
const BROKER_TTL: Duration = Duration::from_secs(300);

/// A sandbox's policy on names.
pub trait Names: Send + Sync + 'static {
    /// Whether the function may ask for this name. Notes what it asked for.
    fn may_ask(&self, name: &str) -> impl Future<Output = bool> + Send;

    /// The address of the broker, for names whose requests go through it.
    fn broker(&self, name: &str) -> Option<IpAddr>;

    /// Records that the rate limit was exceeded.
    fn limited(&self, name: &str);

    /// Allows connections to a name's addresses for at least this long. Returns the addresses that may be given to the
    /// function.
    fn admit(
        &self,
        name: &str,
        addresses: Vec<IpAddr>,
        ttl: Duration,
    ) -> impl Future<Output = Vec<IpAddr>> + Send;
}

/// Answers the queries of one sandbox.
pub struct Asker<N> {
    names: Arc<N>,
    upstream: Arc<Upstream>,
    cache: Mutex<Cache>,
    questions: Mutex<Bucket>,
    upstream_questions: Mutex<Bucket>,
    in_flight: Arc<Semaphore>,
}

impl<N: Names> Asker<N> {
    /// Creates one that asks these servers.
    pub fn new(names: Arc<N>, upstream: Arc<Upstream>) -> Self {
        let now = Instant::now();
        let bucket = |(per_second, at_once)| Mutex::new(Bucket::new(per_second, at_once, now));
        Self {
            names,
            upstream,
            cache: Mutex::default(),
            questions: bucket(QUESTIONS),
            upstream_questions: bucket(UPSTREAM),
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT_MAX)),
        }
    }

    /// The sandbox's policy on names.
    pub(in crate::network) fn names(&self) -> &N {
        &self.names
    }

    /// A place among the concurrent queries; none while there are too many, or if there were too many recently.
    pub(super) fn enter(&self) -> Option<OwnedSemaphorePermit> {
        let place = self.in_flight.clone().try_acquire_owned().ok()?;
        self.questions.lock().take(Instant::now()).then_some(place)
    }

    /// Answers a query in at most `bytes`.
    pub async fn answer(&self, question: &Question, bytes: usize) -> Option<Vec<u8>> {
        let say = |code, addresses: &[IpAddr], ttl| question.answer(code, addresses, ttl, bytes);
        let refuse = |code| say(code, &[], Duration::ZERO);
        let Some(name) = &question.name else {
            return refuse(ResponseCode::Refused);
        };
        if name == "localhost" || name.ends_with(".localhost") {
            let own: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            return say(ResponseCode::NoError, &own, LOCALHOST_TTL);
        }
        if !self.names.may_ask(name).await {
            return refuse(ResponseCode::Refused);
        }
        match question.kind {
            Kind::A | Kind::Aaaa => {}
            // An empty answer: clients fall back to the addresses.
            Kind::Service => return refuse(ResponseCode::NoError),
            Kind::Other(_) => return refuse(ResponseCode::Refused),
        }
        if let Some(broker) = self.names.broker(name) {
            return say(ResponseCode::NoError, &[broker], BROKER_TTL);
        }
        match self.resolve(name, question.kind).await {
            Ok((addresses, ttl)) => say(ResponseCode::NoError, &addresses, ttl),
            Err(code) => refuse(code),
        }
    }

    /// Addresses of a name that may be connected to now, for the broker; none if the policy does not allow it.
    pub async fn addresses(&self, name: &str) -> Vec<IpAddr> {
        if !self.names.may_ask(name).await {
            return Vec::new();
        }
        let (four, six) = tokio::join!(self.resolve(name, Kind::A), self.resolve(name, Kind::Aaaa));
        let found = [four, six].into_iter().flatten();
        found.flat_map(|(addresses, _)| addresses).collect()
    }

    /// The addresses of a name that may be asked for, and how long they are valid.
    async fn resolve(
        &self,
        name: &str,
        kind: Kind,
    ) -> Result<(Vec<IpAddr>, Duration), ResponseCode> {
        let now = Instant::now();
        // Also what was told under a former policy: its addresses go on being allowed by this one, which allows the name.
        if let Some(known) = self.cache.lock().get(name, kind, now) {
            return Ok(known);
        }
        if !self.upstream_questions.lock().take(Instant::now()) {
            self.names.limited(name);
            return Err(ResponseCode::ServFail);
        }
        match self.upstream.ask(name, kind).await {
            Ok(Answer::Addresses(found, ttl)) => {
                let ttl = ttl.min(TTL_MAX);
                let (asked, any) = (Instant::now(), !found.is_empty());
                let admitted = self.names.admit(name, found, ttl).await;
                if admitted.is_empty() && any {
                    return Err(ResponseCode::Refused);
                }
                let mut cache = self.cache.lock();
                cache.put(name, kind, admitted.clone(), asked + ttl, asked);
                Ok((admitted, ttl))
            }
            Ok(Answer::NoSuchName) => Err(ResponseCode::NXDomain),
            Ok(Answer::Truncated | Answer::Failed) => Err(ResponseCode::ServFail),
            Err(error) => {
                tracing::debug!(%error, name, "a name was not resolved");
                Err(ResponseCode::ServFail)
            }
        }
    }
}
