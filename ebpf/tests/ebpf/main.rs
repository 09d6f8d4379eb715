//! The programs in the kernel, by `BPF_PROG_TEST_RUN` and over interfaces in network namespaces of the tests' own.

mod audit;
mod corpus;
mod datagrams;
mod frames;
mod gateway;
mod lifecycle;
mod limits;
mod lists;
mod live;
mod network;
mod refused;
mod signals;
mod sproxy;
mod steering;
mod twin;
mod verdicts;

use std::sync::OnceLock;

use hearth_ebpf::{Capacity, Ingress, LoadError, Maps};
use hearth_testkit::skipped::skip;

const SMALL: Capacity = Capacity {
    functions: 64,
    sources: 1_024,
    prefixes: 1_024,
};

/// The ingress with small maps.
fn load() -> (Ingress, Maps) {
    load_with(SMALL)
}

fn load_with(capacity: Capacity) -> (Ingress, Maps) {
    let ingress = Ingress::load(capacity).expect("the programs load");
    let maps = Maps::new(ingress.descriptors().expect("descriptors")).expect("the maps");
    (ingress, maps)
}

/// Counts the test as skipped where it cannot run: without root, or on a host that makes no maps for it.
fn can_run() -> bool {
    static WITHOUT: OnceLock<Option<String>> = OnceLock::new();
    let without = WITHOUT.get_or_init(|| {
        if !rustix::process::geteuid().is_root() {
            return Some("needs root".to_owned());
        }
        match Ingress::load(SMALL) {
            Err(LoadError::Maps(reason)) => Some(format!("no eBPF on this host: {reason}")),
            // What the verifier refuses is a fault of the programs, which the tests show.
            Ok(_) | Err(LoadError::Refused { .. }) => None,
        }
    });
    if let Some(reason) = without {
        skip(reason);
    }
    without.is_none()
}
