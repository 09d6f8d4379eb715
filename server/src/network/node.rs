//! What all functions share: DNS servers, private networks that are open, and the kernel's word on refused packets.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use ipnet::IpNet;
use parking_lot::Mutex;

use super::attached::Inner;
use super::broker::Trust;
use super::resolver::Upstream;
use crate::sandbox::{OutboundId, Refusals};

/// The network of this node. Cheap to clone.
#[derive(Clone)]
pub struct Node(Arc<Shared>);

struct Shared {
    upstream: Arc<Upstream>,
    open: Vec<IpNet>,
    trust: Trust,
    sandboxes: Mutex<HashMap<OutboundId, Weak<Inner>>>,
}

impl Node {
    /// Starts it. `servers` are asked for names, `open` are private networks that policies may name, `trust` is for requests
    /// with secrets. Needs a runtime.
    pub fn start(
        servers: Vec<std::net::SocketAddr>,
        open: Vec<IpNet>,
        refusals: Option<Refusals>,
        trust: Trust,
    ) -> Self {
        let node = Self(Arc::new(Shared {
            upstream: Arc::new(Upstream::new(servers)),
            open,
            trust,
            sandboxes: Mutex::default(),
        }));
        if let Some(refusals) = refusals {
            tokio::spawn(tell(refusals, Arc::downgrade(&node.0)));
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

    /// Refusals of this sandbox go there from now on.
    pub(super) fn register(&self, id: OutboundId, sandbox: &Arc<Inner>) {
        self.0.sandboxes.lock().insert(id, Arc::downgrade(sandbox));
    }

    /// The sandbox ends. Its number may have been given to another one.
    pub(super) fn unregister(&self, id: OutboundId, sandbox: &Weak<Inner>) {
        let mut sandboxes = self.0.sandboxes.lock();
        if sandboxes
            .get(&id)
            .is_some_and(|known| known.ptr_eq(sandbox))
        {
            sandboxes.remove(&id);
        }
    }
}

/// Hands refusals to the sandboxes that they are of.
async fn tell(mut refusals: Refusals, shared: Weak<Shared>) {
    while let Some(refusal) = refusals.next().await {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let sandbox = shared.sandboxes.lock().get(&refusal.outbound).cloned();
        if let Some(sandbox) = sandbox.and_then(|sandbox| sandbox.upgrade()) {
            sandbox.refused(&refusal);
        }
    }
}
