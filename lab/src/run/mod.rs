//! An experiment from its configuration to its files: deploys what it needs, measures, and removes what it deployed, however it ends.

mod context;
mod deploy;
pub mod environment;
mod error;
mod measure;
pub mod noise;
mod pictures;
pub(crate) mod result;
pub mod storage;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::watch;

use crate::load::process::Generator;
use crate::load::{Report, Sketch, Trust};
use crate::platform::hearth::Hearth;
use crate::stellar::Experiment;
use crate::stellar::files::{Log, create_directory};
use crate::store::{Running, Source};

use context::Context;
pub(crate) use deploy::since;
use environment::Environment;
pub use error::RunError;
use noise::{Noise, Watched};
pub use result::Entry;
use result::Summary;

/// Where the functions are.
#[derive(Debug)]
pub enum Target {
    /// A server that they are deployed to.
    Hearth(Hearth),
    /// An address that stands for all of them; nothing is deployed.
    Endpoint(String),
}

/// How to run an experiment.
#[derive(Debug)]
pub struct Settings {
    /// Where the functions are.
    pub target: Target,
    /// How to start the load generator.
    pub generator: Generator,
    /// Where the run's directory is created.
    pub out: PathBuf,
    /// Runs only the sub-experiment of this number.
    pub only: Option<usize>,
    /// Seed of the stochastic pauses.
    pub seed: u64,
    /// The processor that the load generator runs on.
    pub processor: Option<usize>,
    /// Begins the names of functions; by the time without one.
    pub prefix: Option<String>,
    /// Whose certificates an `https` address may have.
    pub trust: Trust,
    /// The object store of storage transfers.
    pub store: Source,
}

/// What has happened, for those who watch.
#[derive(Debug)]
pub enum Event<'a> {
    /// So many of a sub-experiment's functions are deployed.
    Deployed {
        /// Its number.
        number: usize,
        /// How many are.
        done: usize,
        /// How many there will be.
        total: usize,
    },
    /// Requests have been answered.
    Progress {
        /// Its number.
        number: usize,
        /// Requests that are over.
        done: u64,
        /// Requests in all.
        total: u64,
        /// Those that failed.
        faults: u64,
        /// From sending to the first byte, of the others.
        latencies: &'a Sketch,
        /// Time left, estimated.
        left: Duration,
    },
    /// A sub-experiment is over and its files are written.
    Measured {
        /// Its number.
        number: usize,
        /// Its title.
        title: &'a str,
        /// What came of it.
        report: &'a Report,
        /// Where its files are.
        directory: &'a Path,
    },
    /// Functions are being removed.
    Removing,
}

/// An experiment that is over.
#[derive(Debug)]
pub struct Done {
    /// Where its files are.
    pub directory: PathBuf,
    /// What was measured, up to the first error.
    pub sub_experiments: Vec<Entry>,
    /// How noisy the machine was.
    pub noise: Noise,
    /// What ended it before its end.
    pub error: Option<RunError>,
}

/// Runs an experiment. What was deployed is removed in any case.
///
/// # Errors
/// What keeps it from beginning; nothing is left behind then. What ends it later is in [`Done`].
pub async fn run(
    experiment: &Experiment,
    settings: &Settings,
    cancelled: watch::Receiver<bool>,
    tell: &(dyn Fn(Event<'_>) + Sync),
) -> Result<Done, RunError> {
    let count = experiment.sub_experiments.len();
    if let Some(only) = settings.only.filter(|only| *only >= count) {
        return Err(RunError::Only(only, count));
    }
    // Asked first, so that a wrong address or token leaves nothing.
    let node = match &settings.target {
        Target::Hearth(hearth) => Some(hearth.node().await?),
        Target::Endpoint(_) => None,
    };
    let store = match &settings.target {
        Target::Hearth(_) if uses_store(experiment, settings) => {
            Some(Running::start(&settings.store).await?)
        }
        _ => None,
    };
    let began = Timestamp::now();
    let file = |path: &Path| {
        let path = path.to_owned();
        move |error| RunError::File(path, error)
    };
    fs::create_dir_all(&settings.out).map_err(file(&settings.out))?;
    let directory = create_directory(&settings.out, &began.as_second().to_string());
    let directory = directory.map_err(file(&settings.out))?;
    let zone = TimeZone::system();
    let mut context = Context {
        settings,
        log: Mutex::new(Log::create(&directory, zone.clone()).map_err(file(&directory))?),
        directory,
        zone,
        cancelled,
        tell,
        store,
        prefix: settings
            .prefix
            .clone()
            .unwrap_or_else(|| format!("lab-{:x}", began.as_millisecond())),
    };
    context.log(
        "info",
        &format!("Started with random seed {}.", settings.seed),
    );
    let watched = Watched::begin();
    let (results, error) = measure_all(&context, experiment).await;
    let environment = Environment::read();
    let noise = watched.end(&environment, Some(&context.directory));
    let left = remove_all(&context).await;
    // Not before the functions that use it.
    let stopped = match context.store.take() {
        Some(store) => store.stop().await.map_err(RunError::LeftBehind),
        None => Ok(()),
    };
    let summary = Summary {
        lab_version: env!("CARGO_PKG_VERSION"),
        began_at: began,
        ended_at: Timestamp::now(),
        seed: settings.seed,
        provider: &experiment.provider,
        endpoint: match &settings.target {
            Target::Endpoint(url) => Some(url),
            Target::Hearth(_) => None,
        },
        environment,
        noise: &noise,
        node,
        sub_experiments: &results,
        error: error.as_ref().map(ToString::to_string),
    };
    let path = context.directory.join("experiment.json");
    result::write(&path, &summary).map_err(file(&path))?;
    // The first one is told; what is left behind is in the log in any case.
    let error = error.or(left.err()).or(stopped.err());
    match &error {
        Some(error) => context.log("error", &error.to_string()),
        None => context.log("info", "Done, exiting..."),
    }
    Ok(Done {
        directory: context.directory,
        sub_experiments: results,
        noise,
        error,
    })
}

/// Runs the sub-experiments, one after the other or all at once, and collects what came of them up to the first error.
async fn measure_all(
    context: &Context<'_>,
    experiment: &Experiment,
) -> (Vec<result::Entry>, Option<RunError>) {
    let all = experiment.sub_experiments.iter().enumerate();
    let wanted = all.filter(|(number, _)| context.settings.only.is_none_or(|only| only == *number));
    let mut done = Vec::new();
    if experiment.sequential {
        for (number, one) in wanted {
            let measured = measure::measure(context, number, one).await;
            let has_failed = measured.is_err();
            done.push(measured);
            if has_failed {
                break;
            }
        }
    } else {
        done = join_all(wanted.map(|(number, one)| measure::measure(context, number, one))).await;
    }
    let mut results = Vec::new();
    let mut error = None;
    for one in done {
        match one {
            Ok(entry) => results.push(entry),
            Err(failed) => error = error.or(Some(failed)),
        }
    }
    (results, error)
}

/// Whether a sub-experiment that is wanted has storage transfers.
fn uses_store(experiment: &Experiment, settings: &Settings) -> bool {
    let wanted = |number: usize| settings.only.is_none_or(|only| only == number);
    let mut all = experiment.sub_experiments.iter().enumerate();
    all.any(|(number, one)| wanted(number) && one.storage_transfer)
}

async fn remove_all(context: &Context<'_>) -> Result<(), RunError> {
    let Target::Hearth(hearth) = &context.settings.target else {
        return Ok(());
    };
    (context.tell)(Event::Removing);
    let Err(left) = hearth.remove_all().await else {
        return Ok(());
    };
    let error = RunError::LeftBehind(left);
    context.log("error", &error.to_string());
    Err(error)
}
