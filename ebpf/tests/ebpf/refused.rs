//! What the verifier refuses, it refuses with its log.

use hearth_ebpf::{Capacity, Ingress, LoadError};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::can_run;

const LEAST: Capacity = Capacity {
    functions: 1,
    sources: 1,
    prefixes: 1,
};

/// Does something in a thread whose loads the verifier judges as those of a process that may load programs, but not look into
/// the kernel.
fn without_perfmon<T: Send>(what: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = capabilities(None).expect("own capabilities");
            // The one includes the other.
            sets.effective -= CapabilitySet::PERFMON | CapabilitySet::SYS_ADMIN;
            set_capabilities(None, sets).expect("fewer");
            what()
        });
        thread.join().expect("no panic")
    })
}

#[test]
fn a_program_that_the_verifier_refuses_comes_with_its_log() {
    if !can_run() {
        return;
    }
    let refused = without_perfmon(|| Ingress::load(LEAST).map(drop)).expect_err("refused");
    let LoadError::Refused { name, log } = refused else {
        panic!("{refused}");
    };
    assert_eq!(name, "ingress");
    // Instruction by instruction, and why.
    assert!(
        log.contains("R1=ctx()") && log.contains("prohibited"),
        "{log}"
    );
    // Its last line, which a report keeps when it shortens the log.
    let end = &log[log.floor_char_boundary(log.len() - 200)..];
    assert!(
        end.contains("processed ") && end.contains(" insns"),
        "{end}"
    );
    // What steers loads all the same.
    let steer = without_perfmon(|| Ingress::load_to_steer(LEAST)).expect("the maps");
    assert!(steer.programs()[0].loaded.is_ok(), "{:?}", steer.programs());
}
