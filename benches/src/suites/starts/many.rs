//! Starts with many functions deployed: of the same function repeatedly, and of a different one each time, whose
//! template has not been used for long.

use std::time::{Duration, Instant};

use serde_json::json;

use super::first::{end_instances, request_one, requests};
use crate::client::Connection;
use crate::processes::Workers;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server, event, invocation};

/// Share of the memory that functions may take, in percent: the rest is for everything else.
const BUDGET_PERCENT: u64 = 75;
/// Longest time for deploying all of them. Slower machines measure with fewer.
const DEPLOYING: Duration = Duration::from_secs(150);
/// Clients that deploy at the same time.
const DEPLOYERS: usize = 3;

/// The category of these requests.
pub fn category(deployed: usize) -> String {
    format!("first HTTP request without an instance, {deployed} functions deployed")
}

/// Measures with 100 and with 1,000 functions.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let budget = document.system_info.memory_bytes / 100 * BUDGET_PERCENT / (1 << 20);
    let server = Server::start(&[("HEARTH_MEMORY_BUDGET_MB", &budget.to_string())])?;
    let until = Instant::now() + DEPLOYING;
    let mut deployed = 0;
    for wanted in scale.pick([100, 1000], [4, 8]) {
        deployed = deploy(&server, deployed, wanted, until)?;
        if deployed < wanted {
            document.skip(
                &format!("{wanted} functions"),
                format!(
                    "{deployed} were deployed within {} s; measured with those",
                    DEPLOYING.as_secs()
                ),
            );
        }
        measure(&server, deployed, scale, document)?;
    }
    Ok(())
}

fn function(number: usize) -> String {
    format!("many-{number}")
}

/// Deploys functions up to `wanted`, or until the time is over; says how many there are.
fn deploy(
    server: &Server,
    deployed: usize,
    wanted: usize,
    until: Instant,
) -> anyhow::Result<usize> {
    let next = std::sync::atomic::AtomicUsize::new(deployed);
    std::thread::scope(|scope| {
        let deployers: Vec<_> = (0..DEPLOYERS)
            .map(|_| {
                scope.spawn(|| -> anyhow::Result<()> {
                    while Instant::now() < until {
                        let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        if number >= wanted {
                            break;
                        }
                        let code = Runtime::Python.echo();
                        server.deploy(&function(number), Runtime::Python, code, &json!({}))?;
                    }
                    Ok(())
                })
            })
            .collect();
        deployers.into_iter().try_for_each(|deployer| {
            deployer
                .join()
                .map_err(|_| anyhow::anyhow!("a deployer panicked"))?
        })
    })?;
    Ok(next.into_inner().min(wanted))
}

fn measure(
    server: &Server,
    deployed: usize,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    let count = scale.pick(112, 4);
    let category = category(deployed);
    let one = requests(server, &function(deployed / 2), count)?;
    document.add(&category, "one of them again and again", one);

    let mut others = Samples::default();
    let mut below = 0;
    for round in 0..count {
        // Steps that meet each function once before any twice.
        let name = function(round * 7919 % deployed);
        let call = invocation(&name, &event(1024));
        let mut connection = Connection::open(server.address)?;
        match request_one(&mut connection, &call)? {
            Some(first) if first.start_kind == "fork" => others.push(first.took),
            _ => below += 1,
        }
        end_instances(server, &name)?;
    }
    if others.len() > 0 {
        document.add(&category, "each time another one", others);
    }
    if below > 0 {
        document.figure(
            &category,
            "requests that met no template",
            f64::from(below),
            "of all",
        );
    }
    let workers = Workers::of(server.pid());
    document.figure(
        &category,
        "templates up",
        workers.templates.len() as f64,
        "",
    );
    Ok(())
}
