//! The limits of chains; part of the API's contract.

use std::ops::RangeInclusive;

/// Most members: keeps a chain's graph legible, and the ids of members in a byte.
pub const MAX_MEMBERS: usize = 64;
/// Most instances of one member: the entries of one in the route table.
pub const MAX_CONCURRENCY: u32 = 64;
/// Most instances of all members together. The gateway has a ring from each, and its board holds 127; the rest is for
/// instances that replace others.
pub const MAX_INSTANCES: u32 = 120;
/// Most routes: what a descriptor's field holds.
pub const MAX_ROUTES: usize = 256;
/// Most hops of a route: what a descriptor's field holds.
pub const MAX_HOPS: usize = 256;
/// Most edges: every member to every other.
pub const MAX_EDGES: usize = MAX_MEMBERS * MAX_MEMBERS;
/// Sizes of a block in KiB: from a page, so that blocks never share one, to what a descriptor's field holds.
pub const BLOCK_KB: RangeInclusive<u32> = 4..=8192;
/// Sizes of a payload in KiB: from the smallest block to what a descriptor's field holds.
pub const PAYLOAD_KB: RangeInclusive<u32> = 4..=65_536;
/// Most blocks: each request and each call takes one, and more than this many are not under way at a time.
pub const MAX_BLOCKS: u32 = 65_536;
/// Most bytes of a pool: bounds what one chain can make the server map.
pub const MAX_POOL_BYTES: u64 = 64 << 30;
/// Longest time of a request in ms: 15 minutes, as a function's.
pub const MAX_TIMEOUT_MS: u32 = 900_000;

/// [`super::Pool::block_kb`] if not set.
pub const DEFAULT_BLOCK_KB: u32 = 64;
/// [`super::Pool::blocks`] if not set.
pub const DEFAULT_BLOCKS: u32 = 1024;
/// [`super::Spec::timeout_ms`] if not set, as a function's.
pub const DEFAULT_TIMEOUT_MS: u32 = 30_000;

/// Longest name of a chain, a member or a route.
const MAX_NAME_BYTES: usize = 64;

/// Whether a chain, a member or a route may be called so: 1 to 64 of `[a-z0-9-]`, starting with a letter.
#[must_use]
pub fn is_plain_name(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}
