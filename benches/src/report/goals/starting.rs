//! Goals for starts.

use super::{Goal, MS, least_http};
use crate::report::Documents;
use crate::server::Runtime;
use crate::suites::starts;

pub(super) fn starting(documents: &Documents, goals: &mut Vec<Goal>) {
    let loopback = least_http(documents);
    for (runtime, p50, p99, first) in [
        (Runtime::Python, 0.9, 2.0, 1.5),
        (Runtime::Node, 2.0, 4.0, 3.0),
    ] {
        let name = runtime.name();
        let start = documents.timed("starts", starts::STARTS, &starts::fork_to_ready(runtime));
        let floor = documents
            .timed("starts", starts::STARTS, &starts::fork_floor(runtime))
            .map(|floor| floor.median_ns);
        goals.push(
            Goal::new(
                format!("{name}: `fork()` to READY"),
                format!("p50 ≤ {p50} ms, p99 ≤ {p99} ms"),
            )
            .limits(start, p50 * MS, Some(p99 * MS))
            .floor("C `fork()` of the same process, p50", start, floor),
        );
        let request = documents.timed("starts", starts::FIRST, &starts::first(runtime));
        let both = floor
            .zip(loopback)
            .map(|(fork, loopback)| fork + loopback.median_ns);
        goals.push(
            Goal::new(
                format!("{name}: first HTTP request without an instance"),
                format!("p50 ≤ {first} ms"),
            )
            .limits(request, first * MS, None)
            .floor("that and the least HTTP echo, p50", request, both),
        );
        let restored = starts::restored_with_threads(runtime);
        let restored = documents.timed("starts", starts::WITH_THREADS, &restored);
        goals.push(
            Goal::new(
                format!("{name}: first HTTP request, import with threads running, restored (with a pre-warmed sandbox)"),
                "p50 ≤ 25 ms",
            )
            .limits(restored, 25.0 * MS, None),
        );
    }
    let restore = documents.timed("starts", starts::RESTORES, starts::RESTORE_TO_READY);
    let mut goal = Goal::new(
        "CRIU restore of a Python template, whole sandbox (with a pre-warmed one), to READY",
        "p50 ≤ 15 ms, p99 ≤ 30 ms",
    )
    .limits(restore, 15.0 * MS, Some(30.0 * MS));
    goal.floor = "CRIU restoring a static C program: 6 to 7 ms, not measured in this run".into();
    if let Some(anew) = documents.timed("starts", starts::RESTORES, starts::RESTORE_ANEW) {
        let anew = anew.median_ns / MS;
        goal.floor = format!("{}; without a pre-warmed sandbox {anew:.1} ms", goal.floor);
    }
    goals.push(goal);
}
