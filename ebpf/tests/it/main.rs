//! The programs in the kernel, by `BPF_PROG_TEST_RUN` and over interfaces in network namespaces of the tests' own.

mod corpus;
mod frames;
mod lifecycle;
mod limits;
mod lists;
mod live;
mod network;
mod steering;
mod twin;
mod verdicts;

use hearth_ebpf::{Capacity, Ingress, Maps};

/// The ingress with small maps.
fn load() -> (Ingress, Maps) {
    let capacity = Capacity {
        functions: 64,
        sources: 1_024,
        prefixes: 1_024,
    };
    let ingress = Ingress::load(capacity).expect("the programs load");
    let maps = Maps::new(ingress.descriptors().expect("descriptors")).expect("the maps");
    (ingress, maps)
}

/// Counts the test as skipped where it cannot run.
fn is_root() -> bool {
    if rustix_is_root() {
        return true;
    }
    hearth_testkit::skipped::skip("needs root");
    false
}

fn rustix_is_root() -> bool {
    rustix::process::geteuid().is_root()
}
