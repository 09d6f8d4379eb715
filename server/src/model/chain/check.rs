//! The rules of a chain. The first field that breaks one is named.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::limits::{
    BLOCK_KB, MAX_BLOCKS, MAX_CONCURRENCY, MAX_EDGES, MAX_HOPS, MAX_INSTANCES, MAX_MEMBERS,
    MAX_POOL_BYTES, MAX_ROUTES, MAX_TIMEOUT_MS, PAYLOAD_KB, is_plain_name,
};
use super::{GATEWAY, Hop, Member, Pool, Spec};
use crate::model::InvalidField;

const NAME: &str = "1 to 64 of a-z, 0-9 and -, starting with a letter";
/// Characters of a name that a refusal repeats.
const SHOWN_CHARS: usize = 100;
/// Routes that a refusal lists.
const SHOWN_ROUTES: usize = 10;

impl Spec {
    /// Checks every rule that needs nothing but the settings: whether the functions exist is the server's to say.
    ///
    /// # Errors
    /// The first field that breaks its rule.
    pub fn check(&self) -> Result<(), InvalidField> {
        if !is_plain_name(&self.name) {
            return Err(refuse(
                "name",
                self.name.as_str(),
                format!("must be {NAME}"),
            ));
        }
        self.check_members()?;
        self.check_routes()?;
        self.check_edges()?;
        self.pool.check()?;
        if !(1..=MAX_TIMEOUT_MS).contains(&self.timeout_ms) {
            let rule = format!("must be a whole number from 1 to {MAX_TIMEOUT_MS}");
            return Err(refuse("timeout_ms", self.timeout_ms, rule));
        }
        self.check_cpu()?;
        self.check_triggers()
    }

    /// What a request along a route has to name is here named by the port.
    fn check_triggers(&self) -> Result<(), InvalidField> {
        for (trigger, at) in self.triggers.iter().zip(0..) {
            let field = format!("triggers[{at}].route");
            for (topic, index) in trigger.topics().iter().zip(0..) {
                let field = format!("triggers[{at}].topics[{index}].route");
                self.check_named_route(&field, topic.route.as_deref(), false)?;
            }
            if trigger.topics().is_empty() {
                self.check_named_route(&field, trigger.route(), trigger.has_paths())?;
            }
        }
        Ok(())
    }

    /// A route has to be there, and named where there are several, if not by what comes itself.
    fn check_named_route(
        &self,
        field: &str,
        route: Option<&str>,
        by_path: bool,
    ) -> Result<(), InvalidField> {
        match route {
            Some(route) if !self.routes.contains_key(route) => {
                let rule = format!("must be a route of the chain: {}", self.some_routes());
                return Err(refuse(field, route, rule));
            }
            None if !by_path && self.routes.len() != 1 => {
                let rule = format!(
                    "must be given, because the chain has several routes: {}",
                    self.some_routes()
                );
                return Err(refuse(field, Value::Null, rule));
            }
            _ => {}
        }
        Ok(())
    }

    /// The routes' names, as many as a line takes.
    fn some_routes(&self) -> String {
        let mut names: Vec<_> = self.routes.keys().map(String::as_str).collect();
        if names.len() > SHOWN_ROUTES {
            names.truncate(SHOWN_ROUTES);
            names.push("…");
        }
        format!("one of {}", names.join(", "))
    }

    fn check_members(&self) -> Result<(), InvalidField> {
        let count = self.members.len();
        if !(1..=MAX_MEMBERS).contains(&count) {
            let rule = format!("must have 1 to {MAX_MEMBERS} members; these are {count}");
            return Err(refuse("members", format!("{count} members"), rule));
        }
        for (name, member) in &self.members {
            check_member(name, member)?;
        }
        let instances = self.instances();
        if instances > MAX_INSTANCES {
            let rule = format!(
                "the members' concurrency must be at most {MAX_INSTANCES} together; it is {instances}"
            );
            return Err(refuse("members", format!("{count} members"), rule));
        }
        Ok(())
    }

    fn check_routes(&self) -> Result<(), InvalidField> {
        let count = self.routes.len();
        if !(1..=MAX_ROUTES).contains(&count) {
            let rule = format!("must have 1 to {MAX_ROUTES} routes; these are {count}");
            return Err(refuse("routes", format!("{count} routes"), rule));
        }
        for (name, hops) in &self.routes {
            if !is_plain_name(name) {
                let rule = format!("a route's name must be {NAME}");
                return Err(refuse(&within("routes", name), name.as_str(), rule));
            }
            self.check_route(name, hops)?;
        }
        Ok(())
    }

    fn check_route(&self, name: &str, hops: &[Hop]) -> Result<(), InvalidField> {
        let field = within("routes", name);
        if !(1..=MAX_HOPS).contains(&hops.len()) {
            let rule = format!("must have 1 to {MAX_HOPS} hops; these are {}", hops.len());
            return Err(refuse(&field, format!("{} hops", hops.len()), rule));
        }
        let mut before = &Hop::Gateway;
        for (hop, at) in hops.iter().zip(0..) {
            let field = format!("{field}[{at}]");
            match hop {
                Hop::Member(member) if !self.members.contains_key(member) => {
                    return Err(refuse(&field, member.as_str(), self.one_of(true)));
                }
                Hop::Gateway if before == hop || at + 1 == hops.len() => {
                    let rule = "must be a member: a route begins and ends at the gateway anyway, which never follows itself";
                    return Err(refuse(&field, GATEWAY, rule));
                }
                _ => before = hop,
            }
        }
        Ok(())
    }

    fn check_edges(&self) -> Result<(), InvalidField> {
        let count = self.edges.len();
        if count > MAX_EDGES {
            let rule = format!("must be at most {MAX_EDGES} edges; these are {count}");
            return Err(refuse("edges", format!("{count} edges"), rule));
        }
        let mut seen = BTreeSet::new();
        for (edge, at) in self.edges.iter().zip(0..) {
            let (from, to) = edge;
            for (name, end) in [(from, 0), (to, 1)] {
                if !self.members.contains_key(name) {
                    let field = format!("edges[{at}][{end}]");
                    return Err(refuse(&field, name.as_str(), self.one_of(false)));
                }
            }
            if !seen.insert(edge) {
                let rule = "must be given once";
                return Err(refuse(&format!("edges[{at}]"), json!([from, to]), rule));
            }
        }
        Ok(())
    }

    /// The rule of a name that must be a member's.
    fn one_of(&self, gateway: bool) -> String {
        let mut names: Vec<_> = self.members.keys().map(String::as_str).collect();
        if gateway {
            names.push(GATEWAY);
        }
        format!("must be a member of the chain: one of {}", names.join(", "))
    }
}

fn check_member(name: &str, member: &Member) -> Result<(), InvalidField> {
    let field = within("members", name);
    if !is_plain_name(name) || name == GATEWAY {
        let rule = format!("a member's name must be {NAME}, and not {GATEWAY:?}");
        return Err(refuse(&field, name, rule));
    }
    let Member {
        function,
        version,
        concurrency,
        payload: _,
    } = member;
    if !is_plain_name(function) {
        let rule = "must be the name of a function";
        return Err(refuse(
            &format!("{field}.function"),
            function.as_str(),
            rule,
        ));
    }
    if *version == Some(0) {
        let rule = "must be the number of a version, or null for the active one";
        return Err(refuse(&format!("{field}.version"), 0, rule));
    }
    if !(1..=MAX_CONCURRENCY).contains(concurrency) {
        let rule = format!("must be a whole number from 1 to {MAX_CONCURRENCY}");
        return Err(refuse(&format!("{field}.concurrency"), *concurrency, rule));
    }
    Ok(())
}

impl Pool {
    fn check(&self) -> Result<(), InvalidField> {
        if !BLOCK_KB.contains(&self.block_kb) || !self.block_kb.is_power_of_two() {
            let rule = format!(
                "must be a power of two from {} to {}",
                BLOCK_KB.start(),
                BLOCK_KB.end()
            );
            return Err(refuse("pool.block_kb", self.block_kb, rule));
        }
        if !(1..=MAX_BLOCKS).contains(&self.blocks) {
            let rule = format!("must be a whole number from 1 to {MAX_BLOCKS}");
            return Err(refuse("pool.blocks", self.blocks, rule));
        }
        if self.bytes() > MAX_POOL_BYTES {
            let most = MAX_POOL_BYTES / u64::from(self.block_bytes());
            let rule = format!(
                "must be at most {most} with blocks of {} KiB: a pool has at most {} GiB",
                self.block_kb,
                MAX_POOL_BYTES >> 30
            );
            return Err(refuse("pool.blocks", self.blocks, rule));
        }
        self.payload_kb.map_or(Ok(()), |kb| self.check_payload(kb))
    }

    fn check_payload(&self, payload_kb: u32) -> Result<(), InvalidField> {
        let wrong = |rule| Err(refuse("pool.payload_kb", payload_kb, rule));
        if !PAYLOAD_KB.contains(&payload_kb) || !payload_kb.is_multiple_of(self.block_kb) {
            return wrong(format!(
                "must be a multiple of block_kb, which is {}, up to {}",
                self.block_kb,
                PAYLOAD_KB.end()
            ));
        }
        let blocks = payload_kb / self.block_kb;
        if blocks > 1 && blocks > self.blocks / 2 {
            return wrong(format!(
                "must be at most half of the pool, which has {} blocks of {} KiB",
                self.blocks, self.block_kb
            ));
        }
        Ok(())
    }
}

/// The name of a field within another; what a user called it is shortened.
fn within(field: &str, name: &str) -> String {
    let name: String = name.chars().take(SHOWN_CHARS).collect();
    format!("{field}.{name}")
}

pub(super) fn refuse(
    field: &str,
    value: impl Into<Value>,
    rule: impl Into<String>,
) -> InvalidField {
    let mut shown = value.into().to_string();
    if let Some((end, _)) = shown.char_indices().nth(SHOWN_CHARS) {
        shown.truncate(end);
        shown.push('…');
    }
    InvalidField {
        field: field.to_owned(),
        value: shown,
        rule: rule.into(),
    }
}

#[cfg(test)]
pub(super) mod tests;
