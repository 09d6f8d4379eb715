//! Compares two builds of the server, interleaved, to find the cost of a change: `make bench SUITE=compare BEFORE=…`.
//!
//! A machine's speed drifts by more within a minute than most changes cost, so each round measures both builds right
//! after each other, and a row is the median of the ratios of several lives of both servers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::json;

use super::median::{interval_of_median, middle};
use super::starts::{fall_asleep, first_requests, kill_instances, request_one};
use crate::burst::burst;
use crate::client::Connection;
use crate::load::drive;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server, event, invocation};

/// The variable that names the other build's `hearth`.
pub const OTHER: &str = "HEARTH_BENCH_BEFORE";

/// The variable that selects rows: those whose names contain it.
pub const ROWS: &str = "HEARTH_BENCH_ROWS";

/// Lives of each server. What a server happens to be like, as the number of instances that a load has left it with, stays
/// with it as long as it runs.
const LIVES: usize = 16;
/// Rounds of a life; in every second one the other build comes first.
const ROUNDS: usize = 2;
/// How long each load of a round lasts.
const TURN: Duration = Duration::from_millis(500);
const QUICK_TURN: Duration = Duration::from_millis(20);
/// First requests of a round.
const FIRSTS: usize = 6;
/// Requests of a burst.
const BURST: usize = 100;
/// Bytes of an event, and of a large one.
const EVENT_BYTES: usize = 1 << 10;
const LARGE_EVENT_BYTES: usize = 1 << 20;

/// First requests to a function asleep of which one is restored. A pre-warmed sandbox may not be ready for the others.
const TRIES: usize = 10;

/// The row of restores.
const ASLEEP: &str = "python3: first request to a function asleep";

/// Both builds, in the order of the figures.
const NAMES: [&str; 2] = ["before", "now"];

/// Takes samples of a server.
type Measure = dyn Fn(&Server) -> anyhow::Result<Samples>;

/// One thing to measure of both.
struct Row {
    name: String,
    /// Whether it calls a function without an instance at first, and means to measure one with some.
    starts_instances: bool,
    measure: Box<Measure>,
}

/// Measures every row with both builds.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let Some(before) = std::env::var_os(OTHER)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
    else {
        document.skip(
            "another build",
            "name one: make bench SUITE=compare BEFORE=REVISION",
        );
        return Ok(());
    };
    let wanted = std::env::var(ROWS).unwrap_or_default();
    let mut pair = start(&before)?;
    let runtimes = runtimes(&pair, document)?;
    let mut rows = rows(&runtimes, scale);
    if runtimes.contains(&Runtime::Python) {
        let [before, now] = &pair;
        match before.capability("criu")?.and(now.capability("criu")?) {
            Ok(()) => rows.push(restore()),
            Err(reason) => document.skip(ASLEEP, reason),
        }
    }
    rows.retain(|row| row.name.contains(&wanted));
    let with_image = rows.iter().any(|row| row.name == ASLEEP);
    let mut seen: Vec<Seen> = rows.iter().map(|_| Seen::default()).collect();
    let lives = scale.pick(LIVES, 2);
    for life in 0..lives {
        for server in &pair {
            deploy(server, &runtimes, with_image)?;
        }
        for (row, seen) in rows.iter().zip(&mut seen) {
            seen.add(measure(row, &pair, life)?);
        }
        if life + 1 < lives {
            drop(pair);
            pair = start(&before)?;
        }
    }
    println!(
        "| what | before, p50 | now, p50 | now / before | 95 % interval |\n| --- | ---: | ---: | ---: | --- |"
    );
    for (row, seen) in rows.iter().zip(seen) {
        conclude(&row.name, seen.samples, seen.ratios, document);
    }
    Ok(())
}

/// What was seen of a row.
#[derive(Default)]
struct Seen {
    samples: [Samples; 2],
    /// The ratios of the medians, one for each life.
    ratios: Vec<f64>,
}

impl Seen {
    fn add(&mut self, of_life: [Samples; 2]) {
        let [before, now] = of_life
            .each_ref()
            .map(|samples| samples.metrics().median_ns);
        self.ratios.push(now / before);
        for (all, samples) in self.samples.iter_mut().zip(&of_life) {
            all.extend(samples);
        }
    }
}

/// Starts both builds, in the order of [`NAMES`].
fn start(before: &Path) -> anyhow::Result<[Server; 2]> {
    let context = || before.display().to_string();
    Ok([
        Server::start_program(before, &[]).with_context(context)?,
        Server::start(&[])?,
    ])
}

/// The runtimes that this host has.
fn runtimes(servers: &[Server; 2], document: &mut Document) -> anyhow::Result<Vec<Runtime>> {
    let mut runtimes = Vec::new();
    for runtime in Runtime::ALL {
        match servers[1].runtime(runtime)? {
            Ok(()) => runtimes.push(runtime),
            Err(reason) => document.skip(runtime.name(), reason),
        }
    }
    Ok(runtimes)
}

/// Measures a row in one life of both servers. Its first rounds are not counted: the instances that it needs start then.
fn measure(row: &Row, servers: &[Server; 2], life: usize) -> anyhow::Result<[Samples; 2]> {
    let mut samples = [Samples::default(), Samples::default()];
    if row.starts_instances {
        for server in servers {
            (row.measure)(server)?;
        }
    }
    for round in 0..ROUNDS {
        for turn in 0..2 {
            let which = (life + round + turn) % 2;
            samples[which].extend(&(row.measure)(&servers[which])?);
        }
    }
    Ok(samples)
}

/// Adds a row's samples and the ratio of its medians, and shows them.
fn conclude(row: &str, all: [Samples; 2], mut ratios: Vec<f64>, document: &mut Document) {
    let mut medians = Vec::new();
    for (name, samples) in NAMES.into_iter().zip(all) {
        medians.push(document.add(row, name, samples) / 1e3);
    }
    ratios.sort_by(f64::total_cmp);
    let ratio = middle(&ratios);
    document.figure(row, "now / before", ratio, "×");
    let mut interval = String::from("too few rounds");
    if let Some((low, high)) = interval_of_median(&ratios) {
        document.figure(row, "now / before, from", low, "×");
        document.figure(row, "now / before, to", high, "×");
        interval = format!("{low:.3} to {high:.3}");
    }
    println!(
        "| {row} | {:.1} µs | {:.1} µs | {ratio:.3} | {interval} |",
        medians[0], medians[1]
    );
}

fn echo(runtime: Runtime) -> String {
    format!("echo-{}", runtime.name())
}

fn first(runtime: Runtime) -> String {
    format!("first-{}", runtime.name())
}

/// Deploys what the rows call. Images are made when a server has nothing else to do, so one is waited for before the rows
/// begin.
fn deploy(server: &Server, runtimes: &[Runtime], with_image: bool) -> anyhow::Result<()> {
    for runtime in runtimes.iter().copied() {
        server.deploy(&echo(runtime), runtime, runtime.echo(), &json!({}))?;
        server.deploy(&first(runtime), runtime, runtime.usual(), &json!({}))?;
        if runtime == Runtime::Python {
            let many = json!({ "max_concurrency": 200, "memory_mb": 64 });
            server.deploy("sleeper", runtime, runtime.sleeper(), &many)?;
        }
    }
    if with_image {
        let short = json!({ "idle_timeout_s": 1, "template_idle_timeout_s": 1 });
        server.deploy("asleep", Runtime::Python, Runtime::Python.usual(), &short)?;
        server.wait("asleep", |function| function["image"]["bytes"].is_u64())?;
    }
    Ok(())
}

fn rows(runtimes: &[Runtime], scale: Scale) -> Vec<Row> {
    let turn = scale.pick(TURN, QUICK_TURN);
    let mut rows = Vec::new();
    for runtime in runtimes.iter().copied() {
        let loads = [
            (EVENT_BYTES, "1 KB", 1),
            (EVENT_BYTES, "1 KB", 16),
            (EVENT_BYTES, "1 KB", 64),
            (LARGE_EVENT_BYTES, "1 MB", 1),
        ];
        for (bytes, size, connections) in loads {
            let call = invocation(&echo(runtime), &event(bytes));
            rows.push(Row {
                name: format!(
                    "{}: warm, {size}, {connections} connections",
                    runtime.name()
                ),
                starts_instances: true,
                measure: Box::new(move |server| {
                    Ok(drive(server.address, &call, connections, turn)?.samples)
                }),
            });
        }
        let count = scale.pick(FIRSTS, 1);
        rows.push(Row {
            name: format!("{}: first request without an instance", runtime.name()),
            starts_instances: false,
            measure: Box::new(move |server| first_requests(server, &first(runtime), count)),
        });
    }
    if runtimes.contains(&Runtime::Python) {
        let call = invocation("sleeper", br#"{"s":0}"#);
        rows.push(Row {
            name: format!("burst of {BURST} without an instance"),
            starts_instances: false,
            measure: Box::new(move |server| {
                kill_instances(server, "sleeper")?;
                Ok(burst(server.address, &call, BURST)?.samples)
            }),
        });
    }
    rows
}

/// First requests to a function asleep.
fn restore() -> Row {
    let call = invocation("asleep", &event(EVENT_BYTES));
    Row {
        name: ASLEEP.to_owned(),
        starts_instances: false,
        measure: Box::new(move |server| {
            for _ in 0..TRIES {
                fall_asleep(server, "asleep")?;
                let first = request_one(&mut Connection::open(server.address)?, &call)?;
                if let Some(first) = first.filter(|first| first.start_kind == "restore") {
                    let mut samples = Samples::default();
                    samples.push(first.took);
                    return Ok(samples);
                }
            }
            bail!("{TRIES} first requests to a function asleep, and none was restored")
        }),
    }
}
