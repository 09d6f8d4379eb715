//! A suite against a Hearth server.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::archive::pack;
use super::calls::{Calls, Done};
use super::output::listed;
use super::report::Suite;
use super::settings::{CALL_MAX, Settings, SuiteError, TREES};
use super::stage::Stage;
use super::tool::{Microbenchmark, Tool};
use super::{go, javascript, python};
use crate::duet::Report;
use crate::duet::benchmark::benchmarks;
use crate::duet::order::order;
use crate::duet::run::{DuetError, Progress, aside};
use crate::duet::trials::Trials;
use crate::duet::unit::Unit;
use crate::load::Sketch;
use crate::platform::client::Client;
use crate::platform::hearth::Hearth;
use crate::run::environment::{Environment, Steal};
use crate::run::noise::yardstick;

/// How much longer than a call its answer is waited for: until the server has ended it, and for a turn in its queue.
const ANSWER_SPARE: Duration = Duration::from_mins(2);

/// Compares both trees' benchmarks. The function is removed in any case.
///
/// # Errors
/// As [`SuiteError`] has them. Executions that fail are counted instead.
pub async fn run(
    client: &Client,
    settings: &Settings,
    mut cancelled: watch::Receiver<bool>,
    tell: impl Fn(&str, Progress),
) -> Result<Report, SuiteError> {
    settings.check()?;
    settings.check_trees()?;
    let hearth = Hearth::new(client.clone());
    let node = hearth.node().await?;
    let processors = node["cpus"].as_u64().map_or(1, |count| count as usize);
    let parallel = settings.parallel(processors)?;
    let run = Run {
        settings,
        hearth: &hearth,
        node,
        processors,
        parallel,
        tell: &tell,
    };
    let done = tokio::select! {
        done = run.measure() => done,
        Ok(_) = cancelled.wait_for(|is_cancelled| *is_cancelled) => Err(DuetError::Cancelled.into()),
    };
    match (done, hearth.remove_all().await) {
        (done, Ok(())) => done,
        (Ok(report), Err(left)) => Ok(report.leaving(left)),
        (Err(SuiteError::Duet(DuetError::Cancelled)), Err(left)) => {
            Err(SuiteError::LeftBehind(left))
        }
        (Err(error), Err(_)) => Err(error),
    }
}

struct Run<'a, T> {
    settings: &'a Settings,
    hearth: &'a Hearth,
    node: Value,
    processors: usize,
    parallel: usize,
    tell: &'a T,
}

impl<T: Fn(&str, Progress)> Run<'_, T> {
    async fn measure(self) -> Result<Report, SuiteError> {
        let units = self.deploy().await?;
        let settings = self.settings;
        let is_aa = settings.second.is_none();
        let mut calls = Calls {
            client: self.hearth.client(),
            function: &settings.function,
            tool: settings.tool,
            benchmarks: &[],
            trees: [TREES[0], TREES[usize::from(!is_aa)]],
            parallel: self.parallel,
            limit: settings.limit,
            time_s: settings.time_s,
            within: CALL_MAX + ANSWER_SPARE,
        };
        let mut found = Vec::new();
        for ((tree, path), units) in settings.trees().into_iter().zip(&units) {
            found.push(self.list(&calls, tree, path, units).await?);
        }
        let first = found.remove(0);
        let second = found.pop().unwrap_or_else(|| first.clone());
        let names = |of: &[Microbenchmark], but: &[Microbenchmark]| -> Vec<String> {
            let others = |one: &&Microbenchmark| !but.iter().any(|two| two.name == one.name);
            of.iter()
                .filter(others)
                .map(|one| one.name.clone())
                .collect()
        };
        let (only_first, only_second) = (names(&first, &second), names(&second, &first));
        let common = |one: &&Microbenchmark| !only_first.contains(&one.name);
        let common: Vec<Microbenchmark> = first.iter().filter(common).cloned().collect();
        if common.is_empty() {
            let rule = "both versions have benchmarks, but none of the same name";
            return Err(SuiteError::None(rule.to_owned()));
        }
        settings.method.check(common.len())?;
        let method = &settings.method;
        let with_control = method.with_control && !is_aa;
        let all = order(
            common.len(),
            method.calls,
            method.repeats,
            with_control,
            method.seed,
        );
        let (began_at, began) = (Timestamp::now(), Instant::now());
        let (steal, speed) = (Steal::read(), yardstick());
        calls.benchmarks = &common;
        let tell = |done: usize, results: &Sketch| {
            let each = began.elapsed().checked_div(done as u32);
            let left = each.map(|each| each * (all.len() - done) as u32);
            (self.tell)(
                "calls",
                Progress {
                    done,
                    total: all.len(),
                    left,
                    durations: results.clone(),
                },
            );
        };
        let done = calls.run(&all, tell).await?;
        let steal_share = steal
            .zip(Steal::read())
            .and_then(|(before, after)| after.share_since(before));
        let yardstick_ns = [speed, yardstick()];
        let suite = self.suite(&done, only_first, only_second);
        let named: Vec<(String, Trials)> = common
            .iter()
            .map(|one| one.name.clone())
            .zip(done.trials)
            .collect();
        let (bootstrap, width, step) = (method.bootstrap, method.width, method.repeats);
        let benchmarks =
            aside(move || benchmarks(named, Unit::Trial, &bootstrap, width, step)).await;
        let shown = |path: &PathBuf| path.display().to_string();
        Ok(Report {
            lab_version: env!("CARGO_PKG_VERSION"),
            began_at,
            ended_at: Timestamp::now(),
            first: shown(&settings.first),
            second: shown(settings.second.as_ref().unwrap_or(&settings.first)),
            stage: None,
            calls: method.calls,
            repeats: method.repeats,
            invocations: 1,
            seed: method.seed,
            bootstrap,
            benchmarks,
            against: None,
            replayed: None,
            suite: Some(suite),
            left_behind: None,
            noise: None,
            steal_share,
            environment: Environment::read(),
            width,
            node: self.node.clone(),
        }
        .certified(yardstick_ns))
    }

    /// Stages, packs and deploys. Returns what each tree's benchmarks are in.
    async fn deploy(&self) -> Result<Vec<Vec<String>>, SuiteError> {
        let settings = self.settings;
        let mut stage = Stage::create()?;
        let (trees, paths) = (settings.trees(), &settings.paths);
        let program = settings.program.as_deref();
        let prepared = |done| {
            (self.tell)("trees prepared", Progress::steps(done, trees.len()));
        };
        prepared(0);
        let (units, mut description) = match settings.tool {
            Tool::Go => go::stage(&mut stage, settings.cgo, program, &trees, paths).await?,
            tool @ (Tool::PytestBenchmark | Tool::Pyperf) => {
                python::stage(&mut stage, tool, program, &trees, paths).await?
            }
            tool @ (Tool::Tinybench | Tool::Mitata) => {
                javascript::stage(&mut stage, tool, &trees, paths)?
            }
        };
        for ((_, tree), units) in trees.iter().zip(&units) {
            if units.is_empty() {
                let rule = format!("{} has none for {}", tree.display(), settings.tool.name());
                return Err(SuiteError::None(rule));
            }
        }
        let mut all: Vec<&String> = units.iter().flatten().collect();
        all.sort();
        all.dedup();
        description["tool"] = settings.tool.name().into();
        description["units"] = json!(all);
        stage.write("suite.json", &description.to_string())?;
        let (runtime, files) = settings.tool.runner();
        for (name, content) in files {
            stage.write(name, content)?;
        }
        let archive = aside(move || pack(stage.root())).await?;
        let function = json!({
            "name": settings.function,
            "runtime": runtime,
            "handler": "suite.handler",
            "network": "none",
            "memory_mb": settings.memory_mb,
            "timeout_ms": CALL_MAX.as_millis() as u64,
            // So many processors they may use together: one for each execution, and one for what is beside it.
            "max_concurrency": 2 * self.parallel,
            "idle_timeout_s": CALL_MAX.as_secs(),
        });
        prepared(trees.len());
        let deployed = self
            .hearth
            .deploy_code(&settings.function, &function, &archive);
        deployed.await?;
        Ok(units)
    }

    async fn list(
        &self,
        calls: &Calls<'_>,
        tree: &str,
        path: &Path,
        units: &[String],
    ) -> Result<Vec<Microbenchmark>, SuiteError> {
        let shown = path.display().to_string();
        let mut all = Vec::new();
        for (done, unit) in units.iter().enumerate() {
            let progress = Progress::steps(done, units.len());
            (self.tell)("packages or files listed", progress);
            let limit = self.settings.limit.as_secs_f64();
            let event = json!({ "do": "list", "tree": tree, "unit": unit, "limit_s": limit });
            let answer = calls.invoke(&event).await?;
            let found = listed(self.settings.tool, unit, &answer);
            all.extend(found.map_err(|error| SuiteError::List(shown.clone(), error))?);
        }
        if let Some(only) = &self.settings.only {
            all.retain(|one| one.name.contains(only.as_str()));
        }
        all.sort();
        // Two tests of one file may print the same name; the first is found by it.
        all.dedup_by(|one, two| one.name == two.name);
        if all.is_empty() {
            let only = self.settings.only.as_ref();
            let only = only.map_or_else(String::new, |only| format!(" with {only:?} in its name"));
            let tool = self.settings.tool.name();
            return Err(SuiteError::None(format!(
                "{shown} has none for {tool}{only}"
            )));
        }
        Ok(all)
    }

    fn suite(&self, done: &Done, only_first: Vec<String>, only_second: Vec<String>) -> Suite {
        let (wall_s, measured_s) = (done.wall.as_secs_f64(), done.measured_ns / 1e9);
        Suite {
            tool: self.settings.tool,
            only_first,
            only_second,
            parallel: self.parallel,
            processors: self.processors,
            pinned_to: done.pinned_to.clone(),
            limit_s: self.settings.limit.as_secs_f64(),
            time_s: self.settings.time_s,
            memory_mb: self.settings.memory_mb,
            wall_s,
            measured_s,
            executions_s: done.executions_s,
            ratio: (measured_s > 0.0).then(|| wall_s / measured_s),
        }
    }
}
