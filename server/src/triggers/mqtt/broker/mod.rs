//! MQTT as a client of the node's brokers: what somebody subscribes to there is an event, as at a port, and its result is
//! published on the message's response topic. `server/docs/protocols.md` says how.
//!
//! - [`session`]: one subscriber at one broker, over all of its connections. [`connection`]: one of them, from its beginning.
//!   [`exchange`]: the packets that go to and fro. [`subscribing`]: which topics.
//! - [`dial`]: addresses, TCP and TLS. [`packets`]: what a broker is sent, and says. [`awaited`]: answers that are due.
//!   [`unconfirmed`]: what it has not confirmed.

mod awaited;
mod connection;
mod dial;
mod exchange;
mod packets;
mod session;
mod subscribing;
mod unconfirmed;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;

use super::patience::Pauses;
use crate::config::Brokers;
use crate::network::Trust;
use crate::network::resolver::Upstream;
use crate::ports::Link;
use crate::triggers::Triggers;

use session::{Ended, Session};

/// Pauses between connections that fail.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A connection that lasts this long was a good one: after it the pauses are short again.
const STEADY: Duration = Duration::from_secs(60);

/// What connections to brokers need. Cheap to clone.
#[derive(Clone)]
pub struct Reach {
    /// The brokers.
    pub brokers: Arc<Brokers>,
    /// Resolves their names.
    pub upstream: Arc<Upstream>,
    /// Whose certificates are good, if a broker names none.
    pub trust: Trust,
    /// What runs.
    pub tasks: TaskTracker,
}

impl Reach {
    /// To these brokers, whose names these DNS servers resolve.
    pub fn new(brokers: Brokers, resolvers: Vec<SocketAddr>, trust: Trust) -> Self {
        Self {
            brokers: Arc::new(brokers),
            upstream: Arc::new(Upstream::new(resolvers)),
            trust,
            tasks: TaskTracker::new(),
        }
    }
}

/// Subscribes, on a task of its own, until nobody wants it any more or the server stops.
pub(in crate::triggers) fn begin(triggers: &Triggers, link: Arc<Link>) {
    link.disconnected();
    let broker = triggers.reach.brokers.get(&link.broker).cloned();
    let session = match broker.map(|broker| Session::new(triggers, &link, broker)) {
        Some(Ok(session)) => session,
        Some(Err(error)) => return fail(&link, &format!("the certificates of ca_file: {error}")),
        None => {
            return fail(
                &link,
                "HEARTH_MQTT_BROKERS has no broker of this name any more",
            );
        }
    };
    triggers
        .reach
        .tasks
        .spawn(keep(triggers.clone(), link, session));
}

fn fail(link: &Link, error: &str) {
    tracing::warn!(owner = %link.owner, broker = link.broker, error, "a subscription to a broker has failed");
    link.failed(error);
}

async fn keep(triggers: Triggers, link: Arc<Link>, mut session: Session) {
    let mut pauses = Pauses::new(FIRST_PAUSE, LONGEST_PAUSE);
    loop {
        let began = Instant::now();
        let served = session.serve().await;
        // Before it is seen that there is no connection: whoever sees that looks for the reason.
        if let Err(error) = &served
            && !matches!(error, Ended::Over)
        {
            fail(&link, &error.to_string());
        }
        link.disconnected();
        match served {
            Ok(()) => return,
            Err(Ended::Over) => break,
            Err(_) => {}
        }
        if began.elapsed() >= STEADY {
            pauses.reset();
        }
        tokio::select! {
            () = sleep(pauses.next()) => {}
            () = link.closed.cancelled() => break,
            () = triggers.stopping.cancelled() => return,
        }
    }
    // Nobody wants it any more, and the broker does not know yet.
    if link.closed.is_cancelled() {
        session.forget().await;
    }
}
