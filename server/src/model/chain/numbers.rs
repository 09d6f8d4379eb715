//! Members and routes as the data path numbers them.

use super::{Hop, PayloadForm, Spec};

impl Spec {
    /// The number of a member: 1 and up, in the order of their names; 0 is the gateway.
    #[must_use]
    pub fn member_number(&self, name: &str) -> Option<u8> {
        let at = self.members.keys().position(|member| member == name)?;
        u8::try_from(at + 1).ok()
    }

    /// The name of the member with this number; none for the gateway's, and for one that is no member's.
    #[must_use]
    pub fn member_name(&self, number: u8) -> Option<&str> {
        let at = usize::from(number).checked_sub(1)?;
        self.members.keys().nth(at).map(String::as_str)
    }

    /// The number of a route: 0 and up, in the order of their names.
    #[must_use]
    pub fn route_number(&self, name: &str) -> Option<usize> {
        self.routes.keys().position(|route| route == name)
    }

    /// The members' numbers along each route, in the order of [`Self::route_number`]. A name that is no member's is
    /// left out; there is none in a checked chain.
    #[must_use]
    pub fn numbered_routes(&self) -> Vec<Vec<u8>> {
        let number = |hop: &Hop| match hop {
            Hop::Gateway => Some(0),
            Hop::Member(name) => self.member_number(name),
        };
        let of_route = |hops: &Vec<Hop>| hops.iter().filter_map(number).collect();
        self.routes.values().map(of_route).collect()
    }

    /// Caller and callee of each edge, by number.
    #[must_use]
    pub fn numbered_edges(&self) -> Vec<(u8, u8)> {
        let number = |name: &str| self.member_number(name);
        self.edges
            .iter()
            .filter_map(|(from, to)| Some((number(from)?, number(to)?)))
            .collect()
    }

    /// What the handler of the member with this number is called with.
    #[must_use]
    pub fn member_payload(&self, number: u8) -> PayloadForm {
        let at = usize::from(number).checked_sub(1);
        let member = at.and_then(|at| self.members.values().nth(at));
        member.map(|member| member.payload).unwrap_or_default()
    }

    /// Instances of all members together.
    #[must_use]
    pub fn instances(&self) -> u32 {
        self.members
            .values()
            .map(|member| member.concurrency)
            .fold(0, u32::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::tests::boutique;

    #[test]
    fn members_and_routes_are_numbered_by_name() {
        let spec = boutique();
        let names: Vec<_> = (0..=4).map(|number| spec.member_name(number)).collect();
        assert_eq!(
            names,
            [None, Some("cart"), Some("email"), Some("payment"), None]
        );
        for (name, number) in [("cart", 1), ("email", 2), ("payment", 3)] {
            assert_eq!(spec.member_number(name), Some(number));
        }
        assert_eq!(spec.member_number("gateway"), None);
        assert_eq!(spec.route_number("checkout"), Some(0));
        assert_eq!(spec.route_number("visit"), Some(1));
        assert_eq!(spec.route_number("cart"), None);
        assert_eq!(spec.numbered_routes(), [vec![1, 3, 2], vec![1, 0, 1, 1]]);
        assert_eq!(spec.numbered_edges(), [(1, 3), (3, 1)]);
        assert_eq!(spec.instances(), 4);
    }
}
