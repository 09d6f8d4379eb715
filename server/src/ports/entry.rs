//! What is known of a port, and what is told of it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{Link, MessageCounters, PortError};
use crate::ingress::PortDatagrams;
use crate::model::{Port, PortOwner, PortTrigger};

/// A port, for the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortState {
    /// Which one.
    pub port: Port,
    /// Why it is not open.
    pub failed: Option<PortError>,
}

/// A port that was opened.
pub struct Opened {
    /// Which one.
    pub port: Port,
    /// It listens, or is for datagrams.
    pub socket: OwnedFd,
    /// Datagrams that do not come to the socket.
    pub datagrams: Option<PortDatagrams>,
    /// Cancelled when nobody has it any more.
    pub closed: CancellationToken,
    /// Of the messages that are understood there.
    pub counters: Arc<MessageCounters>,
}

/// What is to be served from now on.
pub enum Begun {
    /// A port.
    Port(Opened),
    /// What somebody subscribes to.
    Link(Arc<Link>),
}

/// What is known of a port.
pub(super) struct Entry {
    pub(super) owner: PortOwner,
    /// None while a change has only claimed it.
    pub(super) trigger: Option<PortTrigger>,
    /// Why it is not open.
    pub(super) failed: Option<PortError>,
    pub(super) closed: CancellationToken,
    pub(super) counters: Arc<MessageCounters>,
}

impl Entry {
    pub(super) fn new(owner: PortOwner, trigger: Option<PortTrigger>) -> Self {
        Self {
            owner,
            trigger,
            failed: None,
            closed: CancellationToken::new(),
            counters: Arc::default(),
        }
    }
}
