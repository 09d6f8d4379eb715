//! First requests right after a deploy, one function after the other, while the server is still preparing in the
//! background; and the same half a minute later.

use std::time::Duration;

use serde_json::json;

use super::first::{end_instances, request_one};
use crate::client::Connection;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server, event, invocation};

/// Functions of each round.
const DEPLOYS: usize = 20;
/// Requests to each within the second after its deploy, each by an instance of its own.
const REQUESTS: usize = 3;
/// How much later the same requests are sent again.
const LATER: Duration = Duration::from_secs(30);

/// The category of these requests.
pub const CATEGORY: &str = "first HTTP request after a deploy, 1 KB";
/// What the report calls those right after the deploy.
pub const AT_ONCE: &str = "within a second";
/// And those that come when all has been made.
pub const HALF_A_MINUTE: &str = "half a minute later";

/// The figure of the 90th percentile of either.
pub fn p90_of(name: &str) -> String {
    format!("{name}: p90")
}

/// Measures rounds of deploys.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let server = Server::start(&[])?;
    let (mut at_once, mut later) = (Samples::default(), Samples::default());
    for round in 0..scale.pick(3, 1) {
        let names: Vec<String> = (0..scale.pick(DEPLOYS, 2))
            .map(|number| format!("deployed-{round}-{number}"))
            .collect();
        for name in &names {
            server.deploy(name, Runtime::Python, Runtime::Python.usual(), &json!({}))?;
            measure(&server, name, &mut at_once)?;
        }
        std::thread::sleep(scale.pick(LATER, Duration::from_secs(1)));
        for name in &names {
            measure(&server, name, &mut later)?;
        }
        for name in &names {
            server.delete(name)?;
        }
    }
    for (name, samples) in [(AT_ONCE, at_once), (HALF_A_MINUTE, later)] {
        if let Some(p90) = samples.clone().without_warm_up().percentile(900) {
            document.figure(CATEGORY, &p90_of(name), p90 / 1e6, "ms");
        }
        document.add(CATEGORY, name, samples);
    }
    Ok(())
}

fn measure(server: &Server, name: &str, samples: &mut Samples) -> anyhow::Result<()> {
    let call = invocation(name, &event(1024));
    let mut connection = Connection::open(server.address)?;
    for _ in 0..REQUESTS {
        if let Some(first) = request_one(&mut connection, &call)? {
            samples.push(first.took);
        }
        end_instances(server, name)?;
    }
    Ok(())
}
