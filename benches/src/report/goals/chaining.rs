//! Goals of chains of functions.

use super::{Goal, MS, at_most};
use crate::report::Documents;
use crate::report::format::{number, percentile, time};
use crate::suites::chains;

const SUITE: &str = "chains";
const US: f64 = 1e3;

pub(super) fn chaining(documents: &Documents, goals: &mut Vec<Goal>) {
    for (way, limit) in [
        (chains::RING_ASLEEP, 8.0 * US),
        (chains::RING_SPINNING, US),
        (chains::SK_MSG, 25.0 * US),
    ] {
        let found = documents.timed(SUITE, chains::HOP, way);
        let goal = Goal::new(
            format!("one hop between two native members, {way}"),
            format!("p50 ≤ {}", time(limit)),
        );
        goals.push(goal.limits(found, limit, None));
    }
    goals.push(beside_one(documents));
    for (length, times) in chains::LENGTHS.into_iter().zip([1.7, 3.0, 5.0]) {
        goals.push(beside_http(documents, length, times));
    }
    for (name, limit) in [
        (chains::PYTHON_ASLEEP, 20.0),
        (chains::PYTHON_SPINNING, 6.0),
    ] {
        let mut goal = Goal::new(format!("Python, {name}"), format!("≤ {limit} µs"));
        let found = documents.value(SUITE, chains::FURTHER, name);
        goal.measured = found.map(|us| (format!("{} µs", number(us)), us <= limit));
        goals.push(goal);
    }
    let mut goal = Goal::new(
        format!("1 MB {}", chains::THROUGH),
        "p50 ≤ 1.2 × that of 1 KB",
    );
    let through = |size| documents.timed(SUITE, chains::THROUGH, size);
    goal.measured = through(chains::LARGE)
        .zip(through(chains::SMALL))
        .map(|(large, small)| {
            let ratio = large.median_ns / small.median_ns;
            let (large, small) = (time(large.median_ns), time(small.median_ns));
            let text = format!("{large} / {small} = {} ×", number(ratio));
            (text, ratio <= 1.2)
        });
    goals.push(goal);
    goals.push(within(documents));
    goals.push(idle(documents));
    let found = documents.timed(SUITE, chains::START, chains::FIRST);
    let goal = Goal::new(format!("{}, {}", chains::START, chains::FIRST), "p50 ≤ 1 s");
    goals.push(goal.limits(found, 1000.0 * MS, None));
}

/// Two functions in a chain beside one of them.
fn beside_one(documents: &Documents) -> Goal {
    let category = chains::two(1);
    let mut goal = Goal::new(
        format!("chain of {category}"),
        "p50 ≤ 1.5 × one function's warm call",
    );
    let found = |name| documents.timed(SUITE, &category, name);
    goal.measured = found(chains::RING)
        .zip(found(chains::ONE))
        .map(|(chain, one)| {
            let ratio = chain.median_ns / one.median_ns;
            let (chain, one) = (time(chain.median_ns), time(one.median_ns));
            let text = format!("{chain} / {one} = {} ×", number(ratio));
            (text, ratio <= 1.5)
        });
    goal
}

/// A chain beside its functions over HTTP: so many times the rate, and no more than that part of the 99th percentile.
fn beside_http(documents: &Documents, length: usize, times: f64) -> Goal {
    let category = chains::lengths(chains::BUSIEST);
    let connections = chains::BUSIEST;
    let mut goal = Goal::new(
        format!(
            "chain of {length} native functions, 1 KB, {connections} connections, beside hop by hop over HTTP"
        ),
        format!("≥ {times} × the rate, p99 ≤ 1/{times} of theirs, less CPU per request"),
    );
    let row = |way| chains::of_length(way, length);
    let timed = |way| documents.timed(SUITE, &category, &row(way));
    let document = documents.of(SUITE);
    let value = |way, unit| document.and_then(|found| found.value_in(&category, &row(way), unit));
    let both = |unit| value(chains::RING, unit).zip(value(chains::BY_HTTP, unit));
    goal.measured = (|| {
        let (rate, theirs) = both("requests/s")?;
        let (cpu, their_cpu) = both(chains::CPU_TIME)?;
        let p99 = timed(chains::RING)?.p99_ns;
        let their_p99 = timed(chains::BY_HTTP)?.p99_ns;
        let text = format!(
            "{}/s / {}/s = {} ×; p99 {} / {}; {} / {} µs of CPU",
            number(rate),
            number(theirs),
            number(rate / theirs),
            percentile(p99),
            percentile(their_p99),
            number(cpu),
            number(their_cpu)
        );
        let good = rate >= times * theirs
            && their_p99.is_some_and(|limit| at_most(p99, limit / times))
            && cpu < their_cpu;
        Some((text, good))
    })();
    goal
}

/// Nothing is copied, serialised or sent over a protocol between a chain's functions.
fn within(documents: &Documents) -> Goal {
    let category = chains::audit(chains::RING);
    let mut goal = Goal::new(
        "copies, (de)serialisations and passes through TCP by a chain\u{2019}s native functions",
        "0 per request",
    );
    let rows = chains::ROWS.iter().filter(|row| chains::is_within(row));
    let values: Option<Vec<f64>> = rows
        .map(|row| documents.value(SUITE, &category, row.name))
        .collect();
    goal.measured = values.map(|values| {
        let sum: f64 = values.iter().sum();
        (number(sum), sum == 0.0)
    });
    goal
}

fn idle(documents: &Documents) -> Goal {
    let mut goal = Goal::new(chains::IDLE, "no CPU, ≤ 2 MiB PSS a member");
    let value = |name| documents.value(SUITE, chains::IDLE, name);
    goal.measured = (|| {
        let (cpu, seconds, mib) = (
            value(chains::CPU)?,
            value(chains::OBSERVED)?,
            value(chains::PSS)?,
        );
        let text = format!(
            "{} ms of CPU in {} s; {} MiB",
            number(cpu),
            number(seconds),
            number(mib)
        );
        // As for idle instances.
        Some((text, cpu <= seconds / 10.0 && mib <= 2.0))
    })();
    goal
}
