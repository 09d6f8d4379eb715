//! Goals under contention: bursts, slow clients, deploys, busy processors, idle instances.

use super::{Goal, MS};
use crate::baselines::Baseline;
use crate::load::Client;
use crate::report::Documents;
use crate::report::format::{number, time};
use crate::server::Runtime;
use crate::suites::{bursts, busy, memory, slow, starts, uploads};

pub(super) fn holding(documents: &Documents, goals: &mut Vec<Goal>) {
    let size = bursts::title(100);
    let burst = |cold| {
        let category = bursts::category(Runtime::Python, cold, 0);
        documents.timed("bursts", &category, &size)
    };
    let mut goal = Goal::new(
        "burst of 100 cold, Python, run time 0",
        "p99 ≤ 100 ms, tail-to-median ≤ 3",
    )
    .floor(
        "the same burst with an idle instance for each, p50",
        burst(true),
        burst(false).map(|warm| warm.median_ns),
    );
    goal.measured = burst(true).and_then(|found| {
        let p99 = found.p99_ns?;
        let ratio = p99 / found.median_ns;
        let text = format!("p99 {}, ratio {}", time(p99), number(ratio));
        Some((text, p99 <= 100.0 * MS && ratio <= 3.0))
    });
    goals.push(goal);
    goals.push(innocent(documents));
    after_deploys(documents, goals);
    after_a_restart(documents, goals);
    goals.extend(Runtime::ALL.map(|runtime| upload(documents, runtime)));
    among_others(documents, goals);
    goals.extend(memory::PRIVILEGED.map(|process| privileged(documents, process)));
    for (runtime, limit) in [(Runtime::Python, 2.0), (Runtime::Node, 8.0)] {
        let name = runtime.name();
        let mut goal = Goal::new(
            format!("{name}: further idle instance"),
            format!("≤ {limit} MiB PSS, no CPU"),
        );
        let value = |what: &str| documents.value("memory", name, what);
        if let (Some(extra), Some(cpu), Some(seconds)) = (
            value(memory::EXTRA),
            value(memory::CPU),
            value(memory::OBSERVED),
        ) {
            let text = format!(
                "{} MiB; all together {} ms of CPU in {} s",
                number(extra),
                number(cpu),
                number(seconds)
            );
            // A hundredth of a percent of one core is what the clock of the kernel may do on its own.
            goal.measured = Some((text, extra <= limit && cpu <= seconds / 10.0));
        }
        goal.floor = "the pages that a fork must write, and its page tables (not in PSS)".into();
        goals.push(goal);
    }
}

/// What a process with privileges costs while nothing happens.
fn privileged(documents: &Documents, process: &str) -> Goal {
    let mut goal = Goal::new(format!("idle {process}"), "≤ 8 MiB PSS, no CPU");
    let value = |what: &str| documents.value("memory", memory::PROCESSES, what);
    if let (Some(pss), Some(cpu), Some(seconds)) = (
        value(&memory::pss_of(process)),
        value(&memory::cpu_of(process)),
        value(memory::OBSERVED),
    ) {
        let (mib, ms, s) = (number(pss), number(cpu), number(seconds));
        let text = format!("{mib} MiB; {ms} ms of CPU in {s} s");
        goal.measured = Some((text, pss <= 8.0 && cpu <= seconds / 10.0));
    }
    goal.floor = "the pages of the program that it writes when it starts".into();
    goal
}

/// What slow clients cost one that is not.
fn innocent(documents: &Documents) -> Goal {
    let p99 = |who: &str| documents.timed("slow", slow::CATEGORY, who)?.p99_ns;
    let mut goal = Goal::new(
        "warm invoke, 1 connection, beside 500 slow clients",
        "p99 ≤ 3 × that alone",
    );
    goal.measured = p99(slow::BESIDE)
        .zip(p99(slow::ALONE))
        .map(|(beside, alone)| {
            let ratio = beside / alone;
            let text = format!("{} / {} = {} ×", time(beside), time(alone), number(ratio));
            (text, ratio <= 3.0)
        });
    goal.floor = "the same alone".into();
    goal
}

/// What making images and pre-forked instances costs the first requests after a deploy.
fn after_deploys(documents: &Documents, goals: &mut Vec<Goal>) {
    let p90 = |name| documents.value("starts", starts::AFTER_DEPLOY, &starts::p90_of(name));
    let mut goal = Goal::new(
        "python3: first HTTP request within a second of its deploy",
        "p90 ≤ 2 × the same half a minute later",
    );
    goal.measured = p90(starts::AT_ONCE)
        .zip(p90(starts::HALF_A_MINUTE))
        .map(|(soon, later)| (beside(soon * MS, later * MS), soon <= 2.0 * later));
    goals.push(goal);
}

/// What a restart costs with many functions.
fn after_a_restart(documents: &Documents, goals: &mut Vec<Goal>) {
    let mut goal = Goal::new(
        starts::RESTART,
        "`readyz` ≤ 2 s, p50 of first requests ≤ 1.2 × before",
    );
    let median = |name| {
        let found = documents.timed("starts", starts::RESTART, name);
        found.map(|found| found.median_ns)
    };
    if let (Some(ready), Some(before), Some(after)) = (
        documents.value("starts", starts::RESTART, starts::READY),
        median(starts::BEFORE_RESTART),
        median(starts::AFTER_RESTART),
    ) {
        let text = format!("{}, p50 {}", time(ready * MS), beside(after, before));
        goal.measured = Some((text, ready <= 2000.0 && after <= 1.2 * before));
    }
    goals.push(goal);
    let found = documents.timed("starts", starts::PANDAS, starts::PANDAS_BOOT);
    goals.push(Goal::new(starts::PANDAS, "by a boot, p50 ≤ 800 ms").limits(
        found,
        800.0 * MS,
        None,
    ));
}

/// A large upload beside a bare server's.
fn upload(documents: &Documents, runtime: Runtime) -> Goal {
    let mut goal = Goal::new(
        format!("{}: 100 MB up through `/fn`", runtime.name()),
        "≥ 0.5 × the rate of a bare server",
    );
    let median = |name: &str| {
        let found = documents.timed("uploads", uploads::CATEGORY, name);
        found.map(|found| found.median_ns)
    };
    goal.measured = median(&uploads::hearth(runtime))
        .zip(median(uploads::bare(runtime)))
        .map(|(ours, theirs)| {
            let text = format!(
                "{} / {} = {} × the rate",
                time(ours),
                time(theirs),
                number(theirs / ours)
            );
            (text, theirs >= 0.5 * ours)
        });
    goal
}

/// What other processes cost on a busy host, ours beside well-known ones.
fn among_others(documents: &Documents, goals: &mut Vec<Goal>) {
    let p99 = |category: &str, who: &str| documents.timed("busy", category, who)?.p99_ns;
    for (client, called) in [
        (Client::RealTime, "warm invoke on a busy host"),
        (
            Client::Ordinary,
            "the same by a client that the others delay, too",
        ),
    ] {
        let echo = busy::warm(busy::Work::Echo, busy::Host::Busy, client);
        let uvicorn = p99(&echo, Baseline::Uvicorn.name());
        for runtime in Runtime::ALL {
            let mut goal = Goal::new(
                format!("{}: {called}", runtime.name()),
                "p99 ≤ 1.5 × uvicorn's",
            );
            goal.measured = p99(&echo, &busy::hearth(runtime))
                .zip(uvicorn)
                .map(|(ours, theirs)| (beside(ours, theirs), ours <= 1.5 * theirs));
            goals.push(goal);
        }
    }
    for host in [busy::Host::Quiet, busy::Host::Busy] {
        let category = busy::reads(host);
        let found = |who: &str| documents.timed("busy", &category, who);
        let mut goal = Goal::new(
            format!("node: first file that an instance reads, {}", host.name()),
            "p50 and p99 ≤ 1.5 × those of a plain Node.js",
        );
        goal.measured = found(busy::FIRST)
            .zip(found(busy::PLAIN))
            .and_then(|(ours, plain)| {
                let (ours99, plain99) = (ours.p99_ns?, plain.p99_ns?);
                let text = format!(
                    "p50 {}; p99 {}",
                    beside(ours.median_ns, plain.median_ns),
                    beside(ours99, plain99)
                );
                let good = ours.median_ns <= 1.5 * plain.median_ns && ours99 <= 1.5 * plain99;
                Some((text, good))
            });
        goals.push(goal);
    }
}

/// Ours beside theirs.
fn beside(ours: f64, theirs: f64) -> String {
    let ratio = number(ours / theirs);
    format!("{} / {} = {ratio} ×", time(ours), time(theirs))
}
