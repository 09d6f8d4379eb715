//! The value of each mechanism: the same calls to servers that lack one mechanism each, interleaved.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;

use super::starts::{fall_asleep, first_requests, kill_instances, request_one};
use crate::burst::burst;
use crate::client::Connection;
use crate::load::drive;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server, event, invocation};

/// What is switched off, and how.
const VARIANTS: [(&str, &[(&str, &str)]); 7] = [
    ("all on", &[]),
    ("without pre-forked instances", &[("HEARTH_PREFORK", "off")]),
    ("without pre-warmed sandboxes", &[("HEARTH_PREWARM", "off")]),
    ("without busy polling", &[("HEARTH_BUSY_POLL_US", "0")]),
    ("without burst", &[("HEARTH_TEST_WITHOUT", "burst")]),
    ("without periodic", &[("HEARTH_TEST_WITHOUT", "periodic")]),
    (
        "without both controllers",
        &[("HEARTH_TEST_WITHOUT", "burst,periodic")],
    ),
];

/// Requests of a burst.
const BURST: usize = 100;
/// The category of first requests to functions asleep.
const ASLEEP: &str = "request to a function asleep, restored";
/// Time between two calls of the periodic caller; the function's instances are idle for a second at most.
const PERIOD: Duration = Duration::from_secs(3);

/// Loads to a function without an instance: connections, and how long a call sleeps in seconds.
const LOADS: [(usize, f64); 4] = [(4, 0.0), (16, 0.0), (64, 0.0), (16, 0.005)];

struct Variant {
    name: &'static str,
    server: Server,
}

/// Measures all rows, in rounds: as many as there are variants, so that each comes once in each place of the order.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let mut variants = VARIANTS
        .into_iter()
        .map(|(name, settings)| {
            let server = Server::start(settings)?;
            prepare(&server)?;
            Ok(Variant { name, server })
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let images = variants[0].server.capability("criu")?;
    match &images {
        Ok(()) => wait_for_images(&variants)?,
        Err(reason) => document.skip(ASLEEP, reason),
    }
    let mut rows = Rows::default();
    for _ in 0..scale.pick(VARIANTS.len(), 1) {
        for variant in &variants {
            one_round(variant, scale, &mut rows)?;
        }
        if images.is_ok() {
            asleep(&variants, &mut rows)?;
        }
        variants.rotate_left(1);
    }
    periodic(&mut variants, scale, &mut rows)?;
    for (row, variant, samples) in rows.times {
        document.add(&row, variant, samples);
    }
    for (row, variant, (sum, count)) in rows.instances {
        document.figure(&row, variant, sum / count, "instances");
    }
    Ok(())
}

/// Samples by row and variant, in the order in which they came up first.
#[derive(Default)]
struct Rows {
    times: Vec<(String, &'static str, Samples)>,
    /// Sum and count of the instances that there were after a load.
    instances: Vec<(String, &'static str, (f64, f64))>,
}

impl Rows {
    fn of(&mut self, row: &str, variant: &'static str) -> &mut Samples {
        entry(&mut self.times, row, variant)
    }

    fn count(&mut self, row: &str, variant: &'static str, instances: f64) {
        let (sum, count) = entry(&mut self.instances, row, variant);
        *sum += instances;
        *count += 1.0;
    }
}

/// What belongs to a row and a variant, made when it is not there.
fn entry<'a, T: Default>(
    list: &'a mut Vec<(String, &'static str, T)>,
    row: &str,
    variant: &'static str,
) -> &'a mut T {
    let at = list
        .iter()
        .position(|(known, name, _)| known == row && *name == variant);
    let at = at.unwrap_or_else(|| {
        list.push((row.to_owned(), variant, T::default()));
        list.len() - 1
    });
    &mut list[at].2
}

/// Instances of a function, starting ones included.
fn instances(server: &Server, name: &str) -> anyhow::Result<f64> {
    let instances = &server.function(name)?["instances"];
    let of = |state: &str| instances[state].as_f64().unwrap_or_default();
    Ok(of("idle") + of("busy") + of("starting"))
}

fn prepare(server: &Server) -> anyhow::Result<()> {
    let python = Runtime::Python;
    let many = json!({ "max_concurrency": 200, "memory_mb": 64 });
    server.deploy("first", python, python.usual(), &json!({}))?;
    server.deploy("echo", python, python.echo(), &json!({}))?;
    server.deploy("sleeper", python, python.sleeper(), &many)?;
    let short = json!({ "idle_timeout_s": 1, "template_idle_timeout_s": 1 });
    server.deploy("asleep", python, python.usual(), &short)?;
    let brief = json!({ "idle_timeout_s": 1 });
    server.deploy("periodic", python, python.usual(), &brief)
}

/// Images are made when a server has nothing else to do, which is hardly ever once the rounds have begun.
fn wait_for_images(variants: &[Variant]) -> anyhow::Result<()> {
    for Variant { server, .. } in variants {
        server.wait("asleep", |function| function["image"]["bytes"].is_u64())?;
    }
    Ok(())
}

fn one_round(variant: &Variant, scale: Scale, rows: &mut Rows) -> anyhow::Result<()> {
    let Variant { name, server } = variant;
    let first = first_requests(server, "first", scale.pick(10, 1))?;
    rows.of("first request without an instance", name)
        .extend(&first);
    let turn = Duration::from_millis(scale.pick(500, 20));
    let warm = drive(server.address, &invocation("echo", &event(1024)), 1, turn)?;
    rows.of("warm request, 1 connection", name)
        .extend(&warm.samples);
    for seconds in scale.pick(vec![0, 1], vec![0]) {
        let call = invocation("sleeper", json!({ "s": seconds }).to_string().as_bytes());
        kill_instances(server, "sleeper")?;
        let found = burst(server.address, &call, BURST)?;
        let row = format!("burst of {BURST} without an instance, run time {seconds} s");
        rows.of(&row, name).extend(&found.samples);
        rows.of(&format!("{row}, last answer"), name)
            .push(found.took);
        rows.count(&row, name, instances(server, "sleeper")?);
    }
    for (connections, seconds) in LOADS {
        let call = invocation("sleeper", json!({ "s": seconds }).to_string().as_bytes());
        kill_instances(server, "sleeper")?;
        let found = drive(server.address, &call, connections, turn)?;
        let row = format!(
            "{connections} connections from one instance, run time {} ms",
            seconds * 1e3
        );
        rows.of(&row, name).extend(&found.samples);
        rows.count(&row, name, instances(server, "sleeper")?);
    }
    kill_instances(server, "sleeper")
}

/// First requests to functions asleep.
fn asleep(variants: &[Variant], rows: &mut Rows) -> anyhow::Result<()> {
    let call = invocation("asleep", &event(1024));
    for Variant { name, server } in variants {
        if *name == "without pre-warmed sandboxes" {
            server.wait("asleep", |function| function["state"] == "asleep")?;
        } else {
            fall_asleep(server, "asleep")?;
        }
        let mut connection = Connection::open(server.address)?;
        if let Some(first) = request_one(&mut connection, &call)?
            && first.start_kind == "restore"
        {
            rows.of(ASLEEP, name).push(first.took);
        }
    }
    Ok(())
}

/// Calls at regular times, after the instances have ended. The first calls teach the rhythm. Each variant in turn is called
/// first, because the first call after a pause is slower, whichever server it goes to.
fn periodic(variants: &mut [Variant], scale: Scale, rows: &mut Rows) -> anyhow::Result<()> {
    let call = invocation("periodic", &event(1024));
    let (taught, counted) = scale.pick((6, 24), (1, 1));
    for number in 0..taught + counted {
        let begun = Instant::now();
        variants.rotate_left(1);
        for Variant { name, server } in &*variants {
            let mut connection = Connection::open(server.address)?;
            let called = Instant::now();
            connection.exchange(&call)?.good()?;
            let took = called.elapsed();
            if number >= taught {
                rows.of("call every 3 s, instances end after 1 s", name)
                    .push(took);
            }
        }
        sleep(PERIOD.saturating_sub(begun.elapsed()));
    }
    Ok(())
}
