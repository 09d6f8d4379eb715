//! The goals of the ingress: what a packet, a port and a request cost there, and what it keeps in a flood.

use hearth_ebpf::Mode;

use super::{Goal, MS};
use crate::report::Documents;
use crate::report::format::{number, percentile, time};
use crate::results::Metrics;
use crate::suites::ingress::flood::{self, Way};
use crate::suites::ingress::function;
use crate::suites::ingress::{ADDED, Fate, LOST, PACKET, PORT, PORTS, PREFIXES, row, world};
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
    let mut goal = Goal::new(
        "a port more, beside 10,000",
        "≤ 1 ms, no packet of others lost",
    );
    let lost = documents.value("ingress", PORT, LOST);
    let added = documents.timed("ingress", PORT, ADDED);
    goal.measured = added.zip(lost).map(|(added, lost)| {
        let text = format!("at most {}, {} lost", time(added.max_ns), number(lost));
        (text, added.max_ns <= MS && lost == 0.0)
    });
    goals.push(goal);
    let connections = world::CONNECTIONS[1];
    let category = function::requests(connections);
    let ratio = documents.value("ingress", &category, &ratio_name(function::SERVERS));
    let mut goal = Goal::new(
        format!("requests to a Python function's TCP port, {connections} connections"),
        "≥ 0.97 × the rate without the ingress",
    );
    goal.measured = ratio.map(|ratio| (format!("{} ×", number(ratio)), ratio >= 0.97));
    goals.push(goal);
    for mode in [Mode::Native, Mode::Generic] {
        let of = |names| {
            documents.value(
                "ingress",
                &world::category(connections, mode),
                &ratio_name(names),
            )
        };
        let mut goal = Goal::new(
            format!(
                "requests to a server that does nothing, over a veth, {connections} connections, {}",
                world::with(mode)
            ),
            "≥ 0.97 × the rate without",
        );
        // The connections wait for nothing else: their rate is the inverse of the latency.
        goal.measured = of([world::WITHOUT, world::with(mode)]).map(|ratio| {
            let rate = 1.0 / ratio;
            (format!("{} ×", number(rate)), rate >= 0.97)
        });
        if let Some(ratio) = of([world::FLOOR, world::with(mode)]) {
            let rate = number(1.0 / ratio);
            goal.floor = format!("{rate} × the rate with a program that does nothing there");
        }
        goals.push(goal);
    }
    for receiver in function::Receiver::ALL {
        let category = receiver.category(function::UNDER_WAY[0]);
        let udp = |row| documents.timed("ingress", &category, row);
        let mut goal = Goal::new(
            format!("{} by AF_XDP", receiver.datagram()),
            "p50 and p99 below those by a socket",
        );
        let both = udp(function::AF_XDP).zip(udp(function::SOCKET));
        goal.measured = both.map(|(ours, theirs)| {
            let said = |found: &Metrics| {
                let p99 = percentile(found.p99_ns);
                format!("p50 {}, p99 {p99}", time(found.median_ns))
            };
            let text = format!("{} against {}", said(ours), said(theirs));
            let p99 = ours.p99_ns.zip(theirs.p99_ns);
            let is_below = ours.median_ns < theirs.median_ns
                && p99.is_some_and(|(ours, theirs)| ours < theirs);
            (text, is_below)
        });
        goals.push(goal);
    }
    let kept = |way| documents.value("ingress", flood::CATEGORY, &flood::keeps(way));
    let costs = |way| documents.value("ingress", flood::CATEGORY, &flood::costs(way));
    let is_known =
        |way| documents.value("ingress", flood::CATEGORY, &flood::is_known(way)) == Some(1.0);
    for (other, least) in [(Way::Nowhere, 5.0), (Way::Nftables, 2.0)] {
        let mut goal = Goal::new(
            "flood in which an innocent client keeps 80 % of its requests, limited in XDP",
            format!("≥ {least} × that with {}", other.name()),
        );
        // Where the client keeps as much of its requests in all that the generator gives, there is no rate to compare with.
        let theirs = kept(other).filter(|_| is_known(other));
        goal.measured = kept(Way::Xdp).zip(theirs).map(|(ours, theirs)| {
            // Where the client keeps as much at all that the generator gives, the rate is higher.
            let more = if is_known(Way::Xdp) { "" } else { "more than " };
            let text = format!("{more}{}/s against {}/s", number(ours), number(theirs));
            (text, ours >= least * theirs)
        });
        if let Some((ours, theirs)) = costs(Way::Xdp).zip(costs(other)) {
            goal.floor = format!(
                "a packet costs the host's receiving thread {} instead of {}",
                time(ours),
                time(theirs)
            );
        }
        goals.push(goal);
    }
}
