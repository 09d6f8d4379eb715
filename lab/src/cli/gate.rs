//! `hearth lab gate`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{ArgGroup, Args};
use hyper::Method as Verb;

use super::duet::Method;
use super::run::block_on;
use super::{COULD_NOT_RUN, FELL_SHORT};
use crate::duet::gate::{Decision, judge};
use crate::duet::{Subject, render};
use crate::platform::client::Client;
use crate::platform::package;

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
        let (active, new) = block_on(async |cancelled| {
            let versions = self.versions(&client).await?;
            anyhow::ensure!(!*cancelled.borrow(), "cancelled");
            Ok(versions)
        })?;
        let of = |version| Subject {
            function: self.function.clone(),
            version: Some(version),
        };
        let (report, directory) =
            self.method
                .compare(&client, of(active), of(new), true, |_| {})?;
        print!("{}", render::text(&report));
        println!("{}", directory?.display());
        Ok(match judge(&report, self.threshold) {
            Decision::Held => {
                let mut done = "";
                if self.activate {
                    let path = format!(
                        "/api/v1/functions/{}/versions/{new}/activate",
                        self.function
                    );
                    let answer =
                        block_on(async |_| Ok(client.send(Verb::POST, &path, None).await?))?;
                    done = if answer.json()["active_version"] == new {
                        " and is active"
                    } else {
                        "; the function's own gate compares it before it becomes active"
                    };
                }
                println!("held: version {new} is not slower than version {active}{done}");
                0
            }
            Decision::FellShort(reasons) => {
                println!("fell short: version {new} {}", reasons.join("; "));
                FELL_SHORT
            }
            Decision::Unknown(reason) => {
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
