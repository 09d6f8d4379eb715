//! Instances that break their chain's rules.

use std::sync::atomic::Ordering;

use hearth_chain::{Instance, Note};

use super::Seat;
use crate::chains::path::Path;

/// Descriptors of no request that an instance may send between two sweeps. One that keeps to the rules sends some, if ever, when others
/// end, or were told of a request by two others.
const STRAYS_MAX: u32 = 256;

/// What is wrong with a descriptor.
pub(in crate::chains::path) enum Wrong {
    /// It belongs to no request that is under way. That happens when an instance has ended meanwhile.
    Stray,
    /// No member that keeps to the rules sends it.
    Rule(String),
}

/// What an instance did against its chain's rules.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) rule: String,
    /// The request that it named. If nobody else has that in hand, it fails with this.
    pub(super) request: Option<u32>,
}

impl Seat {
    /// Ends it because it has broken a rule of the chain. What it has in hand fails with that, and the request that it named.
    pub(in crate::chains::path) fn accuse(&self, chain: &str, rule: String, request: Option<u32>) {
        let told = rule.clone();
        if self.fault.set(Fault { rule, request }).is_ok() {
            tracing::warn!(
                chain,
                instance = self.instance.0,
                fault = told,
                "a member broke its chain's rules, and is ended"
            );
        }
        self.hung.cancel();
    }

    /// Why it is ended, once it is.
    pub(in crate::chains) fn fault(&self) -> &str {
        self.fault
            .get()
            .map_or("the chain's time limit passed", |fault| &fault.rule)
    }

    /// Whether this request ends with it though its block is noted as passed to the gateway, which refused it. That is to be asked
    /// before anybody learns of its end: who called it answers the request then, and is about to pass it to the gateway as well.
    pub(super) fn has_passed_in_vain(&self, request: u32, note: Note) -> bool {
        let refused = self.fault.get().and_then(|fault| fault.request);
        note.holder == Instance::GATEWAY && refused == Some(request)
    }

    /// Begins to count anew.
    pub(in crate::chains::path) fn forget_strays(&self) {
        self.strays.store(0, Ordering::Relaxed);
    }
}

impl Path {
    /// Counts what an instance should not have sent, of this request as it says, and ends it if that was no accident.
    pub(in crate::chains::path) fn refuse(
        &self,
        from: Instance,
        wrong: Wrong,
        request: Option<u32>,
    ) {
        self.count_refused(from);
        let Some(seat) = self.seat_of(from) else {
            return;
        };
        let rule = match wrong {
            Wrong::Rule(rule) => rule,
            Wrong::Stray if seat.strays.fetch_add(1, Ordering::Relaxed) < STRAYS_MAX => return,
            Wrong::Stray => {
                format!("it has sent more than {STRAYS_MAX} descriptors that belong to no request")
            }
        };
        // It is not heard any more.
        self.carry.ignore(from);
        seat.accuse(&self.spec.name, rule, request);
    }
}
