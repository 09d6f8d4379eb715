//! Routes and calls as they are configured, checked, and the edges that they need.

use std::collections::BTreeSet;

use crate::descriptor::Kind;
use crate::id::Member;

/// Most routes of a chain: what a descriptor's field holds.
pub const MAX_ROUTES: usize = 256;
/// Most hops of a route: what a descriptor's field holds.
pub const MAX_HOPS: usize = 256;

/// A route or call that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// There are too many routes.
    #[error("{0} routes: must be 256 or fewer")]
    TooManyRoutes(usize),
    /// A route has no hop, or too many.
    #[error("route {route} has {hops} hops: must have 1 to 256")]
    Hops {
        /// The route's position.
        route: usize,
        /// Its hops.
        hops: usize,
    },
    /// A route or call names a member that the chain does not have.
    #[error("there is no member {0:?}")]
    NoMember(Member),
    /// A route goes from the gateway to the gateway.
    #[error("hop {hop} of route {route}: the gateway is followed by itself")]
    GatewayTwice {
        /// The route's position.
        route: usize,
        /// The hop's.
        hop: usize,
    },
    /// A call from or to the gateway, which takes part in routes only.
    #[error("the gateway neither calls nor is called")]
    GatewayCall,
}

/// A chain's routes, and which members may send what to whom: nothing that is not needed here.
///
/// - Along a route, each hop passes on to the next, the gateway to the first, and the last to the gateway.
/// - A declared call may be made one way and replied to the other; a request may be passed on that way, too.
/// - Every member may end a request, fail it, or return a block to the gateway, and gets grants from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    routes: Vec<Vec<Member>>,
    passes: BTreeSet<(Member, Member)>,
    calls: BTreeSet<(Member, Member)>,
    members: u8,
}

impl Plan {
    /// Checks routes and calls between the members 1 to `members`.
    ///
    /// # Errors
    /// The first that cannot be.
    pub fn new(
        members: u8,
        routes: &[Vec<Member>],
        calls: &[(Member, Member)],
    ) -> Result<Self, PlanError> {
        if routes.len() > MAX_ROUTES {
            return Err(PlanError::TooManyRoutes(routes.len()));
        }
        let mut passes = BTreeSet::new();
        for (nodes, route) in routes.iter().zip(0..) {
            let hops = nodes.len();
            if hops == 0 || hops > MAX_HOPS {
                return Err(PlanError::Hops { route, hops });
            }
            let mut before = Member::GATEWAY;
            for (&node, hop) in nodes.iter().chain([&Member::GATEWAY]).zip(0..) {
                if node.0 > members {
                    return Err(PlanError::NoMember(node));
                }
                if before == Member::GATEWAY && node == Member::GATEWAY {
                    return Err(PlanError::GatewayTwice { route, hop });
                }
                passes.insert((before, node));
                before = node;
            }
        }
        for &(from, to) in calls {
            for member in [from, to] {
                if member == Member::GATEWAY {
                    return Err(PlanError::GatewayCall);
                }
                if member.0 > members {
                    return Err(PlanError::NoMember(member));
                }
            }
        }
        Ok(Self {
            routes: routes.to_vec(),
            passes,
            calls: calls.iter().copied().collect(),
            members,
        })
    }

    /// The number of members, the gateway not counted.
    #[must_use]
    pub fn members(&self) -> u8 {
        self.members
    }

    /// Each route's hops.
    #[must_use]
    pub fn routes(&self) -> &[Vec<Member>] {
        &self.routes
    }

    /// Whether `from` may send this kind to `to`.
    #[must_use]
    pub fn allows(&self, from: Member, to: Member, kind: Kind) -> bool {
        let is_member = |member: Member| member.0 >= 1 && member.0 <= self.members;
        match kind {
            // Who may call a member may also pass a request on to it, ahead of its turn.
            Kind::Pass => self.passes.contains(&(from, to)) || self.calls.contains(&(from, to)),
            Kind::Call => self.calls.contains(&(from, to)),
            Kind::Reply => self.calls.contains(&(to, from)),
            Kind::Failure => {
                self.calls.contains(&(to, from)) || is_member(from) && to == Member::GATEWAY
            }
            Kind::Return | Kind::End => is_member(from) && to == Member::GATEWAY,
            Kind::Grant => from == Member::GATEWAY && is_member(to),
        }
    }

    /// Whether `from` may send anything to `to`: whether there is a ring.
    #[must_use]
    pub fn has_edge(&self, from: Member, to: Member) -> bool {
        Kind::ALL.iter().any(|&kind| self.allows(from, to, kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(nodes: &[u8]) -> Vec<Member> {
        nodes.iter().copied().map(Member).collect()
    }

    fn refusal(routes: &[Vec<Member>], calls: &[(Member, Member)]) -> PlanError {
        Plan::new(4, routes, calls).expect_err("no plan")
    }

    #[test]
    fn the_references_example_has_the_edges_of_its_routes_and_no_other() {
        let routes = [
            route(&[1, 2, 3, 4]),
            route(&[1, 0, 2, 0, 3, 0, 4]),
            route(&[1, 2, 3, 4, 3, 2, 1]),
            route(&[1, 0, 2, 0, 3, 0, 4, 0, 3, 0, 2, 0, 1]),
        ];
        let plan = Plan::new(4, &routes, &[]).expect("a plan");
        for (from, to) in (0..=4_u8).flat_map(|from| (0..=4_u8).map(move |to| (from, to))) {
            let is_neighbour = from != 0 && to != 0 && from.abs_diff(to) == 1;
            let is_gateways = (from == 0) != (to == 0);
            assert_eq!(
                plan.allows(Member(from), Member(to), Kind::Pass),
                is_neighbour || is_gateways,
                "{from} to {to}"
            );
            assert!(!plan.allows(Member(from), Member(to), Kind::Call));
        }
    }

    #[test]
    fn a_call_goes_one_way_and_its_reply_the_other() {
        let [one, two, three] = [1, 2, 3].map(Member);
        let plan = Plan::new(3, &[route(&[1])], &[(one, two)]).expect("a plan");
        assert!(plan.allows(one, two, Kind::Call) && !plan.allows(two, one, Kind::Call));
        for kind in [Kind::Reply, Kind::Failure] {
            assert!(plan.allows(two, one, kind) && !plan.allows(one, two, kind));
        }
        assert!(plan.allows(one, two, Kind::Pass) && !plan.allows(two, one, Kind::Pass));
        assert!(plan.has_edge(one, two) && plan.has_edge(two, one));
        assert!(!plan.has_edge(one, three) && !plan.has_edge(three, one));
        assert!(plan.has_edge(three, Member::GATEWAY) && plan.has_edge(Member::GATEWAY, three));
        for kind in [Kind::Pass, Kind::Call, Kind::Reply] {
            assert!(!plan.allows(three, Member::GATEWAY, kind));
        }
        assert!(
            !plan.allows(one, two, Kind::Grant)
                && !plan.allows(Member(9), Member(0), Kind::Failure)
        );
    }

    #[test]
    fn each_rule_has_its_error() {
        assert_eq!(
            refusal(&[vec![]], &[]),
            PlanError::Hops { route: 0, hops: 0 }
        );
        let long = vec![Member(1); MAX_HOPS + 1];
        assert_eq!(
            refusal(&[route(&[1]), long.clone()], &[]),
            PlanError::Hops {
                route: 1,
                hops: 257
            }
        );
        assert!(
            Plan::new(1, &[long[1..].to_vec()], &[]).is_ok(),
            "loops and self-edges"
        );
        assert_eq!(refusal(&[route(&[5])], &[]), PlanError::NoMember(Member(5)));
        for (nodes, hop) in [
            (route(&[0, 1]), 0),
            (route(&[1, 0, 0, 2]), 2),
            (route(&[1, 0]), 2),
        ] {
            assert_eq!(
                refusal(&[nodes], &[]),
                PlanError::GatewayTwice { route: 0, hop }
            );
        }
        let many = vec![route(&[1]); MAX_ROUTES + 1];
        assert_eq!(refusal(&many, &[]), PlanError::TooManyRoutes(257));
        let calls = [(Member(1), Member(0))];
        assert_eq!(refusal(&[], &calls), PlanError::GatewayCall);
        assert_eq!(
            refusal(&[], &[(Member(6), Member(1))]),
            PlanError::NoMember(Member(6))
        );
    }
}
