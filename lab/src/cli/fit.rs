//! `hearth lab fit`.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use clap::Args;
use hyper::Method;
use serde_json::{Value, json};

use super::FELL_SHORT;
use super::run::{Server, block_on};
use crate::load::drive::Ended;
use crate::load::{Arrivals, Plan, Report, Request, Schedule, Trust, run};
use crate::platform::client::Client;
use crate::statistics::line::Line;

/// Share of a rate that has to be reached for its point to count: beyond, the chain is at its end, and takes what there is.
const REACHED: f64 = 0.95;
/// Below this share of explained variance, a constant says little.
const EXPLAINED: f64 = 0.9;
/// Failed requests after which a rate is given up.
const FAULTS_MAX: u64 = 100;
const CONNECTIONS: usize = 100;

/// Measures what the members of a chain take of the processors for each request: sends requests at several rates, and fits a line
/// through what each member has taken. The constants become the chain's cpu_us, and its cpu "proportional". Exit status 1 if a
/// member's constant is not to be relied on; then nothing is changed.
#[derive(Args)]
pub(super) struct Fit {
    /// The chain
    chain: String,
    /// Route that requests take; may be repeated, and they take turns [default: the only one]
    #[arg(long)]
    route: Vec<String>,
    /// Event of each request (JSON)
    #[arg(long, default_value = "{}")]
    event: String,
    /// Requests per second, comma-separated, two rates at least
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "50,100,200,400",
        value_name = "RATE"
    )]
    rates: Vec<f64>,
    /// Seconds at each rate
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Only print the constants
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    server: Server,
}

/// By member.
type Times = BTreeMap<String, f64>;

impl Fit {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let good = |rate: &f64| rate.is_finite() && *rate > 0.0;
        ensure!(
            self.rates.len() > 1 && self.rates.iter().all(good),
            "rates: two at least, each more than 0, such as 50,100"
        );
        ensure!(
            self.seconds.is_finite() && self.seconds > 0.0,
            "seconds: more than 0"
        );
        serde_json::from_str::<Value>(&self.event).context("event: JSON")?;
        let client = self.server.client()?;
        let requests = self.requests(&client)?;
        let mut points: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for &rate in &self.rates {
            let before = self.times(&client)?;
            let report = self.load(&requests, rate)?;
            let after = self.times(&client)?;
            let seconds = report.elapsed_ns as f64 / 1e9;
            let answered = report.good as f64 / seconds;
            println!("{rate}/s: {answered:.1} answered per second");
            if answered < REACHED * rate {
                println!("  left out: the chain does not keep up with it");
                continue;
            }
            for (member, after) in after {
                let taken = after - before.get(&member).copied().unwrap_or_default();
                // Another instance has taken an instance's place, and begins at 0.
                ensure!(
                    taken >= 0.0,
                    "an instance of member \"{member}\" was started meanwhile: try again"
                );
                points
                    .entry(member)
                    .or_default()
                    .push((answered, taken / seconds));
            }
        }
        let (constants, is_reliable) = constants(&points)?;
        if !is_reliable {
            println!("not set: measure for longer, or at other rates");
            return Ok(FELL_SHORT);
        }
        if !self.dry_run {
            let change = json!({"cpu": "proportional", "cpu_us": constants});
            let content = Some(("application/json", change.to_string().into_bytes()));
            block_on(async |_| Ok(client.send(Method::PATCH, &self.path(), content).await?))?;
            println!("set: the chain's processor time is in proportion to its requests");
        }
        Ok(0)
    }

    fn path(&self) -> String {
        format!("/api/v1/chains/{}", self.chain)
    }

    fn chain(&self, client: &Client) -> anyhow::Result<Value> {
        let found = block_on(async |_| Ok(client.send(Method::GET, &self.path(), None).await?))?;
        Ok(found.json())
    }

    fn requests(&self, client: &Client) -> anyhow::Result<Vec<Request>> {
        let mut routes = self.route.clone();
        if routes.is_empty() {
            let chain = self.chain(client)?;
            let known: Vec<&String> = chain["routes"]
                .as_object()
                .context("the server's answer has no routes")?
                .keys()
                .collect();
            let [only] = known.as_slice() else {
                bail!("route: one of {known:?}");
            };
            routes.push((*only).clone());
        }
        let request = |route: &String| Request {
            method: "POST".to_owned(),
            url: client.url(&format!("{}/routes/{route}/invoke", self.path())),
            headers: vec![
                ("authorization".to_owned(), client.authorization()),
                ("content-type".to_owned(), "application/json".to_owned()),
            ],
            body: self.event.clone(),
        };
        Ok(routes.iter().map(request).collect())
    }

    /// What each member has taken, in seconds.
    fn times(&self, client: &Client) -> anyhow::Result<Times> {
        let chain = self.chain(client)?;
        let members = chain["live"]["members"]
            .as_object()
            .context("the chain is not in service")?;
        let time = |(name, member): (&String, &Value)| {
            let us = member["cpu_us"].as_f64();
            let us = us.context("the server tells no processor time")?;
            Ok((name.clone(), us / 1e6))
        };
        members.iter().map(time).collect()
    }

    fn load(&self, requests: &[Request], rate: f64) -> anyhow::Result<Report> {
        let plan = Plan {
            requests: requests.to_vec(),
            schedule: Schedule::Open {
                arrivals: Arrivals::Fixed { rate },
                duration_ms: Some((self.seconds * 1e3).ceil() as u64),
                count: None,
            },
            connections: CONNECTIONS,
            keep_alive: CONNECTIONS,
            timeout_ms: 30_000,
            capture_bytes: 0,
            faults_max: Some(FAULTS_MAX),
            processor: None,
            trust: Trust::default(),
        };
        plan.check()?;
        let report = Report::of(&plan, &run(&plan, None, &mut |_| {})?);
        ensure!(
            report.ended != Ended::TooManyFaults,
            "given up at {rate}/s: {:?}",
            report.faults
        );
        Ok(report)
    }
}

/// The constants in µs, and whether all are to be relied on.
fn constants(
    points: &BTreeMap<String, Vec<(f64, f64)>>,
) -> anyhow::Result<(BTreeMap<&str, u32>, bool)> {
    let mut constants = BTreeMap::new();
    let mut is_reliable = true;
    println!("{:32}{:>16}{:>10}", "member", "µs a request", "R²");
    for (member, points) in points {
        let line = Line::through(points);
        let line = line.context("rates: the chain keeps up with less than two of them")?;
        println!(
            "{member:32}{:>16.1}{:>10.3}",
            line.slope * 1e6,
            line.explained
        );
        is_reliable &= line.explained >= EXPLAINED && line.slope > 0.0;
        // Its cast saturates; none takes that long.
        constants.insert(member.as_str(), (line.slope * 1e6).ceil().max(1.0) as u32);
    }
    ensure!(
        !constants.is_empty(),
        "rates: the chain keeps up with none of them"
    );
    Ok((constants, is_reliable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_slopes_and_noise_is_told() {
        let of = |points: &[(f64, f64)]| BTreeMap::from([("cart".to_owned(), points.to_vec())]);
        // A base of a hundredth of a processor, and 150 µs a request.
        let clear = of(&[(100.0, 0.025), (200.0, 0.040), (400.0, 0.070)]);
        let (found, is_reliable) = constants(&clear).expect("constants");
        assert!(is_reliable && found["cart"].abs_diff(150) <= 1, "{found:?}");
        let noise = of(&[(100.0, 0.05), (200.0, 0.01), (400.0, 0.03)]);
        assert!(!constants(&noise).expect("constants").1);
        assert!(constants(&of(&[(100.0, 0.1)])).is_err());
        assert!(constants(&BTreeMap::new()).is_err());
    }
}
