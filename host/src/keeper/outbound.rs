//! What the server asks for about a sandbox's network.

use std::os::fd::OwnedFd;

use super::Keeper;
use crate::SandboxError;
use crate::probe::OUTBOUND_REASON;
use crate::protocol::{Key, Reply, Resolved, Sequence};

impl Keeper {
    pub(super) fn set_policy(&mut self, sequence: Sequence, _key: Key, _policy: Option<OwnedFd>) {
        self.no_network(sequence);
    }

    pub(super) fn allow(&mut self, sequence: Sequence, _key: Key, _resolved: Resolved) {
        self.no_network(sequence);
    }

    pub(super) fn count(&mut self, sequence: Sequence, _key: Key) {
        self.no_network(sequence);
    }

    fn no_network(&mut self, sequence: Sequence) {
        let error = SandboxError::step("network", OUTBOUND_REASON);
        self.say(Reply::Refused(sequence, error.into()));
    }
}
