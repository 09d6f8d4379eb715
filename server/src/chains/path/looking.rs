//! Looking for an answer before sleeping, as a function's channel does: to be woken on an idle processor takes longer than a
//! short chain.
//!
//! Whoever waits for an answer looks at the gateway's rings in the receiving task's stead, one at a time. Meanwhile members need not
//! ring; the announcement that the task sleeps is renewed afterwards, and the task woken where that comes too late.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hearth_abi::spin::{AdaptiveSpin, look};
use hearth_chain::routes::Plan;
use hearth_chain::{Looks, Member};
use parking_lot::Mutex;
use tokio::sync::oneshot::Receiver;

use super::Path;
use super::pending::Back;
use crate::engine::Admitted;
use crate::turns;

/// Descriptors that are taken between two looks at the answer.
const AT_ONCE: usize = 16;

/// Times that a route has each of its members, on average, from which it goes round.
const ROUNDS: usize = 4;

/// Whether it pays, and who is at it.
#[derive(Debug)]
pub(super) struct Looking {
    spin: Mutex<AdaptiveSpin>,
    /// Whether anybody ever looks.
    is_on: bool,
    /// Which members may look, by the route of a request.
    by_route: Vec<Looks>,
}

impl Looking {
    /// Looks for so long at most; never, if that is zero. The host has so many processors.
    pub(super) fn new(busy_poll: Duration, cores: u32, plan: &Plan) -> Self {
        let routes = plan.routes().iter();
        Self {
            spin: Mutex::new(AdaptiveSpin::new(busy_poll)),
            is_on: !busy_poll.is_zero(),
            by_route: routes
                .map(|route| who_looks(route, plan.members(), cores))
                .collect(),
        }
    }
}

/// Which members may look on a route of a chain with so many: all, if there is a processor for each of them and one for this server.
/// While a route goes round among a few, nobody else is needed.
fn who_looks(route: &[Member], members: u8, cores: u32) -> Looks {
    let on_route: BTreeSet<u8> = route.iter().map(|member| member.0).collect();
    let goes_round =
        route.len() >= ROUNDS * on_route.len() && !on_route.contains(&Member::GATEWAY.0);
    let parties = match goes_round {
        true => on_route.len(),
        false => usize::from(members) + 1,
    };
    if parties > cores as usize {
        Looks::InTurn
    } else {
        Looks::Everybody
    }
}

impl Path {
    /// Which instances may look for what comes next before they sleep.
    pub(super) fn looks(&self, route: u8, admitted: &Admitted) -> Looks {
        let looks = self.looking.by_route.get(usize::from(route));
        let looks = looks.filter(|_| admitted.has_free_core());
        looks.copied().unwrap_or(Looks::Nobody)
    }

    /// Whether a request's instances do best on one processor: nobody but the one whose turn it is looks, and they have no
    /// other request, nor other work to wait for.
    pub(super) fn together(&self, looks: Looks, under_way: u32) -> bool {
        under_way == 1 && (looks == Looks::InTurn || !self.looking.is_on)
    }

    /// Looks for an answer for as long as that is worth a processor; none if it has not come by then.
    pub(super) fn look_for(self: &Arc<Self>, came: &mut Receiver<Back>) -> Option<Back> {
        let mut spin = self.looking.spin.try_lock()?;
        let inbox = self.carry.inbox()?;
        let budget = spin.budget(Instant::now)?;
        inbox.lock().retract();
        let mut found = None;
        let looked = look(budget, || {
            // Who is at it may be copying a large result; this thread has others to serve.
            if !self.receiving.is_locked() && inbox.lock().is_ready() {
                self.take_arrivals(AT_ONCE);
            }
            found = came.try_recv().ok();
            found.is_some()
        });
        spin.learn(looked);
        turns::begin();
        if !matches!(inbox.lock().announce(), Ok(true)) {
            self.bells.wake();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_look_where_there_is_a_processor_for_each() {
        let route = |members: &[u8]| members.iter().copied().map(Member).collect::<Vec<_>>();
        let two = route(&[1, 2]);
        assert_eq!(who_looks(&two, 2, 2), Looks::InTurn);
        assert_eq!(who_looks(&two, 2, 3), Looks::Everybody);
        assert_eq!(
            who_looks(&two, 9, 4),
            Looks::InTurn,
            "others may be called, or be on other routes"
        );
        let round = route(&[1, 2, 1, 2, 1, 2, 1, 2]);
        assert_eq!(who_looks(&round, 2, 2), Looks::Everybody);
        assert_eq!(who_looks(&round, 2, 1), Looks::InTurn);
        assert_eq!(who_looks(&round[..6], 2, 2), Looks::InTurn);
        let by_gateway = route(&[1, 0, 1, 0, 1, 0, 1, 0]);
        assert_eq!(who_looks(&by_gateway, 1, 1), Looks::InTurn);
        assert_eq!(who_looks(&by_gateway, 1, 2), Looks::Everybody);
    }
}
