//! `hearth lab gate`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{ArgGroup, Args};
use hyper::Method as Verb;

use super::duet::Method;
use super::run::block_on;
use super::{COULD_NOT_RUN, FELL_SHORT};
use crate::duet::{Report, Subject, render};
use crate::platform::client::Client;
use crate::platform::package;
use crate::plot::forest::percent;
use crate::statistics::Verdict;

/// Compares a new version of a function with the active one, for CI. Exit status 0 if it is not slower by the threshold, 1 if it is, or
/// fails where the active one does not, 2 if that cannot be judged.
#[derive(Args)]
#[command(group(ArgGroup::new("new").required(true)))]
pub(super) struct Gate {
    /// The function
    function: String,
    /// The new version, which is there already
    #[arg(long, group = "new")]
    version: Option<u32>,
    /// Code of the new version (.py, .js, .mjs or .zip), which is added without activating it
    #[arg(long, group = "new")]
    code: Option<PathBuf>,
    /// Share by which it may be slower: a change counts from here
    #[arg(long, default_value_t = 0.05)]
    threshold: f64,
    /// Activate the new version if it holds
    #[arg(long)]
    activate: bool,
    #[command(flatten)]
    method: Method,
}

/// So often a new version may fail with an event with which the active one does not: anything may go wrong once.
const FAULTS_BORNE: usize = 2;

/// What a gate decides.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Held,
    FellShort(Vec<String>),
    /// Why it cannot be judged.
    Unknown(String),
}

impl Gate {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        ensure!(
            (0.0..=10.0).contains(&self.threshold),
            "threshold: 0 to 10, such as 0.05"
        );
        let subject: Subject = self.function.parse().map_err(anyhow::Error::msg)?;
        ensure!(
            subject.version.is_none(),
            "function: its name; the version is that of --version or --code"
        );
        let client = self.method.server.client()?;
        let (active, new) = block_on(async |_| self.versions(&client).await)?;
        let of = |version| Subject {
            function: self.function.clone(),
            version: Some(version),
        };
        let (report, directory) =
            self.method
                .compare(&client, of(active), of(new), true, |_| {})?;
        print!("{}", render::text(&report));
        println!("{}", directory.display());
        Ok(match judge(&report, self.threshold) {
            Outcome::Held => {
                if self.activate {
                    let path = format!(
                        "/api/v1/functions/{}/versions/{new}/activate",
                        self.function
                    );
                    block_on(async |_| Ok(client.send(Verb::POST, &path, None).await?))?;
                }
                let done = if self.activate { " and is active" } else { "" };
                println!("held: version {new} is not slower than version {active}{done}");
                0
            }
            Outcome::FellShort(reasons) => {
                println!("fell short: version {new} {}", reasons.join("; "));
                FELL_SHORT
            }
            Outcome::Unknown(reason) => {
                println!("not judged: {reason}");
                COULD_NOT_RUN
            }
        })
    }

    /// The active version's number and the new one's, which is added if it is not there.
    async fn versions(&self, client: &Client) -> anyhow::Result<(u32, u32)> {
        let path = format!("/api/v1/functions/{}", self.function);
        let function = client.send(Verb::GET, &path, None).await?.json();
        let active = number(&function["active_version"])?;
        let new = match (self.version, &self.code) {
            (Some(version), _) => version,
            (None, Some(code)) => {
                let (media_type, form) = form(code)?;
                let path = format!("{path}/versions");
                let content = Some((media_type.as_str(), form));
                let added = client.send(Verb::POST, &path, content).await?.json();
                let new = number(&added["version"])?;
                eprintln!("version {new} added; version {active} stays active");
                new
            }
            (None, None) => bail!("--version or --code"),
        };
        ensure!(new != active, "version {new} is the active one");
        Ok((active, new))
    }
}

fn number(value: &serde_json::Value) -> anyhow::Result<u32> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.context("the server's answer has no version")
}

/// A form with a file of code.
fn form(path: &Path) -> anyhow::Result<(String, Vec<u8>)> {
    let shown = path.display().to_string();
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.filter(|name| !name.contains(['"', '\r', '\n']));
    let name = name.with_context(|| format!("{shown}: no name of a file with code"))?;
    let bytes = fs::read(path).with_context(|| shown.clone())?;
    Ok(package::form(&serde_json::Value::Null, name, &bytes))
}

/// By the verdicts, with a threshold, as a share of the active version's time.
fn judge(report: &Report, threshold: f64) -> Outcome {
    let (mut fails, mut slower, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for one in &report.benchmarks {
        let (name, trials) = (&one.name, &one.trials);
        let only_new = trials.second_faults == trials.faults();
        let is_worse = trials.second_faults > FAULTS_BORNE
            || one.comparison.is_none() && trials.second_faults > 0;
        match (one.comparison, one.verdict) {
            // However fast the rest is.
            _ if only_new && is_worse => {
                let error = trials.error.as_deref().unwrap_or("it takes too long");
                fails.push(format!("fails with {name}: {error}"));
            }
            (Some(found), Some(Verdict::Slower)) if found.change.estimate >= threshold => {
                let change = percent(found.change.estimate);
                slower.push(format!("is slower by {change} with {name}"));
            }
            (Some(_), _) => {}
            (None, _) => left_out.push(name.as_str()),
        }
    }
    let is_noisy = report.control_changes() > 0;
    if !is_noisy {
        fails.append(&mut slower);
    }
    if !fails.is_empty() {
        Outcome::FellShort(fails)
    } else if is_noisy {
        Outcome::Unknown(format!(
            "{} beside itself differs, too: this host is too noisy now",
            report.first
        ))
    } else if left_out.is_empty() {
        Outcome::Held
    } else {
        Outcome::Unknown(format!("too few trials with {}", left_out.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duet::render::tests::{report, trials};

    #[test]
    fn a_gate_holds_falls_short_or_does_not_know() {
        let judged = |first_second: f64, control: f64| {
            judge(
                &report(vec![("event", trials(45, first_second, control))]),
                0.05,
            )
        };
        assert_eq!(judged(100.0, 100.5), Outcome::Held);
        assert_eq!(judged(80.0, 100.5), Outcome::Held);
        // Slower, but by less than the threshold.
        assert_eq!(judged(103.0, 100.5), Outcome::Held);
        let Outcome::FellShort(reasons) = judged(130.0, 100.5) else {
            panic!("30 % slower");
        };
        assert!(
            reasons[0].starts_with("is slower by +30 % with event"),
            "{reasons:?}"
        );
        assert!(matches!(judged(130.0, 130.0), Outcome::Unknown(_)));

        let few = |second_faults| {
            let mut few = trials(5, 100.0, 100.0);
            (few.failed, few.interrupted, few.second_faults) = (9, 1, second_faults);
            few.error = Some("502".to_owned());
            judge(&report(vec![("event", few)]), 0.05)
        };
        let fails = Outcome::FellShort(vec!["fails with event: 502".to_owned()]);
        assert_eq!(few(10), fails);
        assert!(matches!(few(5), Outcome::Unknown(_)));

        // Enough trials, and fast ones, but it fails again and again.
        let flaky = |second_faults, failed| {
            let mut flaky = trials(35, 80.0, 100.5);
            (flaky.failed, flaky.second_faults) = (failed, second_faults);
            flaky.error = Some("502".to_owned());
            judge(&report(vec![("event", flaky)]), 0.05)
        };
        assert_eq!(flaky(10, 10), fails);
        assert_eq!(flaky(FAULTS_BORNE, FAULTS_BORNE), Outcome::Held);
        // The active one does, too.
        assert_eq!(flaky(5, 10), Outcome::Held);
    }
}
