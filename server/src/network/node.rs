//! What all functions share: DNS servers, private networks that are open, and what the kernel tells of packets and connections.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use ipnet::IpNet;
use jiff::Timestamp;
use parking_lot::Mutex;

use super::attached::Inner;
use super::broker::Trust;
use super::function::FunctionNetwork;
use super::resolver::Upstream;
use crate::sandbox::{OutboundId, Report, Reports};

/// The network of this node. Cheap to clone.
#[derive(Clone)]
pub struct Node(Arc<Shared>);

struct Shared {
    upstream: Arc<Upstream>,
    open: Vec<IpNet>,
    trust: Trust,
    /// What the kernel's ids stand for, or stood for last: a connection may be reported after its sandbox has ended. As many
    /// as there are addresses for sandboxes.
    sandboxes: Mutex<HashMap<OutboundId, Known>>,
}

struct Known {
    sandbox: Weak<Inner>,
    function: Weak<FunctionNetwork>,
}

impl Node {
    /// Starts it. `servers` are the DNS servers to ask, `open` the private networks that policies may list, `trust` is for
    /// requests with secrets. Needs a runtime.
    pub fn start(
        servers: Vec<std::net::SocketAddr>,
        open: Vec<IpNet>,
        reports: Option<Reports>,
        trust: Trust,
    ) -> Self {
        let node = Self(Arc::new(Shared {
            upstream: Arc::new(Upstream::new(servers)),
            open,
            trust,
            sandboxes: Mutex::default(),
        }));
        if let Some(reports) = reports {
            tokio::spawn(tell(reports, Arc::downgrade(&node.0)));
        }
        node
    }

    /// Private networks that are open.
    pub fn open(&self) -> &[IpNet] {
        &self.0.open
    }

    pub(super) fn trust(&self) -> Trust {
        self.0.trust.clone()
    }

    pub(super) fn upstream(&self) -> Arc<Upstream> {
        self.0.upstream.clone()
    }

    /// What the kernel tells of this sandbox goes there from now on.
    pub(super) fn register(&self, id: OutboundId, sandbox: &Arc<Inner>) {
        let known = Known {
            sandbox: Arc::downgrade(sandbox),
            function: Arc::downgrade(sandbox.function()),
        };
        self.0.sandboxes.lock().insert(id, known);
    }
}

/// Hands reports to those that they are of.
async fn tell(mut reports: Reports, shared: Weak<Shared>) {
    while let Some(report) = reports.next().await {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let of = |id: OutboundId| {
            let sandboxes = shared.sandboxes.lock();
            let known = sandboxes.get(&id)?;
            Some((known.sandbox.upgrade(), known.function.upgrade()))
        };
        match report {
            Report::Refused(refusal) => {
                if let Some((Some(sandbox), _)) = of(refusal.outbound) {
                    sandbox.refused(&refusal);
                }
            }
            Report::Connection(connection) => {
                if let Some((sandbox, Some(function))) = of(connection.outbound) {
                    let name = sandbox.and_then(|sandbox| sandbox.name_of(connection.address));
                    let mut ledger = function.ledger.lock();
                    ledger.connection(name, &connection, Timestamp::now());
                }
            }
        }
    }
}
