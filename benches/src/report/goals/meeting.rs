//! The goals of the ingress: what a packet, a port and a request cost there.

use hearth_ebpf::Mode;

use super::{Goal, MS};
use crate::report::Documents;
use crate::report::format::{number, time};
use crate::suites::ingress::{ADDED, Fate, PACKET, PORT, PORTS, PREFIXES, row, world};
use crate::suites::pair::ratio_name;

pub(super) fn meeting(documents: &Documents, goals: &mut Vec<Goal>) {
    let packet = |fate, ports| documents.timed("ingress", PACKET, &row(fate, ports, PREFIXES[0]));
    let floor = documents.timed("ingress", PACKET, crate::suites::ingress::FLOOR);
    for (what, fate, ports, most) in [
        ("a packet that is not ours", Fate::NotOurs, PORTS[0], 60.0),
        (
            "a SYN counted and limited, 10,000 ports",
            Fate::Limited,
            PORTS[2],
            120.0,
        ),
    ] {
        let found = packet(fate, ports);
        goals.push(
            Goal::new(what, format!("p50 ≤ {most} ns"))
                .limits(found, most, None)
                .floor(
                    "a program that does nothing",
                    found,
                    floor.map(|floor| floor.median_ns),
                ),
        );
    }
    let mut goal = Goal::new("a port more, beside 10,000", "≤ 1 ms");
    goal.measured = documents.timed("ingress", PORT, ADDED).map(|found| {
        (
            format!("at most {}", time(found.max_ns)),
            found.max_ns <= MS,
        )
    });
    goals.push(goal);
    for mode in [Mode::Native, Mode::Generic] {
        let (connections, with) = (world::CONNECTIONS[1], world::with(mode));
        let category = world::category(connections, mode);
        let ratio = documents.value("ingress", &category, &ratio_name([world::WITHOUT, with]));
        let mut goal = Goal::new(
            format!("requests over a veth, {connections} connections, {with}"),
            "≥ 0.97 × the rate without",
        );
        // The connections wait for nothing else: their rate is the inverse of the latency.
        goal.measured = ratio.map(|ratio| {
            let rate = 1.0 / ratio;
            (format!("{} ×", number(rate)), rate >= 0.97)
        });
        goals.push(goal);
    }
}
