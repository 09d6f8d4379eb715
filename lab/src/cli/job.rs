//! `hearth lab run` of an experiment that names its kind, as `POST /api/v1/experiments` takes it.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use jiff::Timestamp;
use serde_json::Value;

use super::run::{TELL_EVERY, block_on, writable};
use super::{COULD_NOT_RUN, FELL_SHORT};
use crate::job::endpoints::Endpoints;
use crate::job::run::{Progress, Runner, run};
use crate::job::spec::Job;
use crate::load::process::Generator;
use crate::platform::client::Client;
use crate::store::Source;

/// Whether a file is such an experiment. What is no JSON is read as STeLLAR's, which says so.
pub(super) fn has_kind(text: &[u8]) -> bool {
    serde_json::from_slice::<Value>(text).is_ok_and(|value| value.get("kind").is_some())
}

/// Runs it, and prints what came of it. Exit status 0, 1 if it fell short, 2 if it ended with an error.
pub(super) fn run_file(
    text: &[u8],
    client: Client,
    generator: Generator,
    store: Source,
    out: PathBuf,
    processor: Option<usize>,
) -> anyhow::Result<u8> {
    let job = Job::read(text)?;
    writable(&out)?;
    let runner = Runner {
        client,
        generator,
        out,
        prefix: format!("lab-{:x}", Timestamp::now().as_millisecond()),
        // Suites name directories below the present one.
        trees: Some(std::env::current_dir()?),
        endpoints: Endpoints::Any,
        store,
        processor,
    };
    let last = Mutex::new(None);
    let outcome = block_on(async |cancelled| {
        Ok(run(&job, &runner, cancelled, &|progress| tell(&last, &progress)).await?)
    })?;
    print!("{}", outcome.text);
    if !outcome.was_cancelled {
        println!("{}", outcome.directory.display());
    }
    Ok(match outcome.error {
        Some(error) => {
            eprintln!("hearth lab: {error}");
            COULD_NOT_RUN
        }
        None if outcome.fell_short => FELL_SHORT,
        None => 0,
    })
}

/// A line now and then.
pub(super) fn tell(last: &Mutex<Option<Instant>>, progress: &Progress) {
    let mut last = last
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if last.is_some_and(|last| last.elapsed() < TELL_EVERY) {
        return;
    }
    *last = Some(Instant::now());
    let left = progress
        .left_s
        .map_or_else(String::new, |left| format!(", about {left:.0} s left"));
    eprintln!(
        "{}: {} of {}{left}",
        progress.what, progress.done, progress.total
    );
}
