//! What all functions share: DNS servers, open private networks, and the kernel's reports of refused packets.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use ipnet::IpNet;
use parking_lot::Mutex;

use super::attached::Inner;
use super::resolver::Upstream;
use crate::sandbox::{OutboundId, Refusals};

/// The network of this node. Cheap to clone.
#[derive(Clone)]
pub struct Node(Arc<Shared>);

struct Shared {
    upstream: Arc<Upstream>,
    open: Vec<IpNet>,
    sandboxes: Mutex<HashMap<OutboundId, Weak<Inner>>>,
}

impl Node {
    /// Starts it. `servers` are the DNS servers to ask, `open` the private networks that policies may list. Needs a
    /// runtime.
    pub fn start(
        servers: Vec<std::net::SocketAddr>,
        open: Vec<IpNet>,
        refusals: Option<Refusals>,
    ) -> Self {
        let node = Self(Arc::new(Shared {
            upstream: Arc::new(Upstream::new(servers)),
            open,
            sandboxes: Mutex::default(),
        }));
        if let Some(refusals) = refusals {
            tokio::spawn(deliver(refusals, Arc::downgrade(&node.0)));
        }
        node
    }

    /// Private networks that are open.
    pub fn open(&self) -> &[IpNet] {
        &self.0.open
    }

    pub(super) fn upstream(&self) -> Arc<Upstream> {
        self.0.upstream.clone()
    }

    /// Delivers this sandbox's refusals there from now on.
    pub(super) fn register(&self, id: OutboundId, sandbox: &Arc<Inner>) {
        self.0.sandboxes.lock().insert(id, Arc::downgrade(sandbox));
    }

    /// Forgets an ended sandbox, unless its number belongs to another one already.
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

/// Delivers refusals to their sandboxes.
async fn deliver(mut refusals: Refusals, shared: Weak<Shared>) {
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
