//! The tail table of STeLLAR's paper for this host, as `hearth lab stellar` makes it, with fewer samples. Factors that have a goal have
//! more than the others. Beside them is what the host itself does: a server that does nothing, asked at the pace of warm requests, on
//! processors that have fallen asleep since the last one.

use std::time::Duration;

use hearth_lab::job::spec::measurable;
use hearth_lab::load::Trust;
use hearth_lab::platform::hearth::Hearth;
use hearth_lab::run::{Entry, Settings, Target, run as run_experiment};
use hearth_lab::stellar::Experiment;
use hearth_lab::store::{Program, Source};
use hearth_lab::table::{Factor, Table, factors};
use tokio::sync::watch;

use super::{client, load_generator, runtime};
use crate::peers::Peer;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server};

/// The category of ratios.
pub const TAIL: &str = "tail table";
/// The category of latencies to the first byte.
pub const LATENCY: &str = "tail table: time to the first byte";
/// Units: tail-to-median ratio, median and tail over the warm median, requests that found no instance, and the ratio of the paper's best cloud, where known.
pub const TMR: &str = "TMR";
/// The same.
pub const MR: &str = "MR";
/// The same.
pub const TR: &str = "TR";
/// The same.
pub const COLD: &str = "% cold";
/// The same.
pub const PAPER_TMR: &str = "best TMR in the paper";

/// Factors with a goal of their own, and samples of each; and of the others.
const WITH_GOAL: [&str; 3] = ["warm", "cold", "burst-100-cold"];
const SAMPLES: usize = 600;
const OTHER_SAMPLES: usize = 100;
/// The row of a server that does nothing.
pub const TRIVIAL: &str = "trivial server, at the pace of warm";
/// What a quick run measures.
const QUICK: [&str; 2] = ["warm", "cold"];
const QUICK_SAMPLES: usize = 10;

/// What is measured, with how many samples.
fn chosen(scale: Scale) -> Vec<(Vec<&'static Factor>, usize)> {
    if scale.quick {
        let factors = QUICK.into_iter().filter_map(Factor::named).collect();
        return vec![(factors, QUICK_SAMPLES)];
    }
    let all = factors::FACTORS.iter().filter(|factor| !factor.is_large);
    let (with_goal, others) = all.partition(|factor| WITH_GOAL.contains(&factor.name));
    vec![(with_goal, SAMPLES), (others, OTHER_SAMPLES)]
}

pub(super) fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    // Where the lab's store is.
    let server = Server::start(&[("HEARTH_NETWORK_ALLOW_PRIVATE", "198.18.104.0/24")])?;
    for runtime in Runtime::ALL {
        if let Err(reason) = server.runtime(runtime)? {
            document.skip(TAIL, reason);
            return Ok(());
        }
    }
    let out = tempfile::Builder::new().prefix("hearth-bench-").tempdir()?;
    let generator = load_generator()?;
    let store = Source::Own(Program {
        program: generator.program.clone(),
        arguments: ["lab", "store", "--attached"].map(Into::into).to_vec(),
    });
    let mut settings = Settings {
        target: Target::Hearth(Hearth::new(client(&server)?)),
        generator,
        out: out.path().to_owned(),
        only: None,
        seed: 1,
        processor: None,
        prefix: None,
        trust: Trust::default(),
        store,
    };
    let mut measured = Vec::new();
    let chosen = chosen(scale);
    // Of factors with a goal.
    let (_, samples) = chosen[0];
    for (factors, samples) in chosen {
        let lab = client(&server)?;
        let possible = measurable(factors, &lab, &settings.store, "lab-bench");
        let (factors, left_out) = runtime()?.block_on(possible);
        if let Some(reason) = left_out {
            document.skip("storage transfers", reason);
        }
        let experiment = factors::experiment(&factors, samples)?;
        measured.extend(run_one(&experiment, &settings)?);
    }
    conclude(&measured, samples, document);
    let (_server, address) = Peer::Trivial.start()?;
    settings.target = Target::Endpoint(format!("http://{address}/"));
    let warm = &factors::FACTORS[0];
    let experiment = factors::experiment(&[warm], samples)?;
    let entries = run_one(&experiment, &settings)?;
    for row in Table::of(&entries, samples).rows {
        document.figure(TAIL, TRIVIAL, row.latency_ns.tmr, TMR);
    }
    for entry in &entries {
        add_latencies(entry, warm.warm_up(samples), TRIVIAL, document);
    }
    Ok(())
}

fn run_one(experiment: &Experiment, settings: &Settings) -> anyhow::Result<Vec<Entry>> {
    let (_sender, cancelled) = watch::channel(false);
    let ran = run_experiment(experiment, settings, cancelled, &|_| {});
    let done = runtime()?.block_on(ran)?;
    match done.error {
        Some(error) => Err(error.into()),
        None => Ok(done.sub_experiments),
    }
}

/// `samples`: of factors with a goal. That of the others makes no difference to what is left out of them.
fn conclude(measured: &[Entry], samples: usize, document: &mut Document) {
    for row in Table::of(measured, samples).rows {
        let mut add = |unit, value: Option<f64>| {
            if let Some(value) = value {
                document.figure(TAIL, row.factor, value, unit);
            }
        };
        add(TMR, Some(row.latency_ns.tmr));
        add(MR, row.ratios.map(|ratios| ratios.mr));
        add(TR, row.ratios.map(|ratios| ratios.tr));
        add(COLD, row.cold_share.map(|share| share * 100.0));
        add(PAPER_TMR, row.paper_tmr.values().copied().reduce(f64::min));
    }
    for factor in &factors::FACTORS {
        if let Some(entry) = measured.iter().find(|entry| entry.title == factor.name) {
            add_latencies(entry, factor.warm_up(samples), factor.name, document);
        }
    }
}

fn add_latencies(entry: &Entry, warm_up: u32, name: &str, document: &mut Document) {
    let mut samples = Samples::default();
    for (burst, ns) in &entry.latencies_ns {
        if *burst >= warm_up {
            samples.push(Duration::from_nanos(*ns as u64));
        }
    }
    if samples.len() > 0 {
        document.add(LATENCY, name, samples);
    }
}

/// The columns of the report's table: units.
pub const COLUMNS: [&str; 5] = [TMR, MR, TR, COLD, PAPER_TMR];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_run_measures_each_factor_once_within_minutes() {
        let all = chosen(Scale { quick: false });
        let mut names: Vec<&str> = all
            .iter()
            .flat_map(|(factors, _)| factors.iter().map(|factor| factor.name))
            .collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!((names.len(), count), (15, 15));
        assert_eq!(all[0].0.len(), WITH_GOAL.len());
        let seconds: f64 = all
            .iter()
            .flat_map(|(factors, samples)| {
                factors::experiment(factors, *samples)
                    .unwrap()
                    .sub_experiments
            })
            .map(|one| hearth_lab::stellar::schedule::seconds(&one))
            .sum();
        assert!(seconds < 900.0, "{seconds}");
        let quick = chosen(Scale { quick: true });
        assert!(factors::experiment(&quick[0].0, quick[0].1).is_ok());
    }
}
