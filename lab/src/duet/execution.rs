//! One execution: a version runs a benchmark, in instances of a template of its own.

use std::time::Duration;

use hyper::Method;
use tokio::time::timeout;

use super::order::Role;
use super::run::Settings;
use super::subject::Subject;
use super::trials::{Fault, Turn};
use crate::platform::calibrate::stage;
use crate::platform::client::{Client, ClientError};

/// Longest execution, after which it is interrupted: the paper's 20 s for a microbenchmark.
const EXECUTION_MAX: Duration = Duration::from_secs(20);

/// Templates of a round: of both versions and the control.
const TEMPLATES: u32 = 3;

/// The subject by its version's number, which is the active one's where none is given.
pub(crate) async fn numbered(client: &Client, subject: &Subject) -> Result<Subject, ClientError> {
    let path = format!("/api/v1/functions/{}", subject.function);
    let function = client.send(Method::GET, &path, None).await?.json();
    let active = function["active_version"].as_u64();
    Ok(Subject {
        version: subject.version.or(active.map(|version| version as u32)),
        ..subject.clone()
    })
}

/// Versions' runs of benchmarks.
pub(super) struct Execution<'a> {
    pub(super) client: &'a Client,
    pub(super) settings: &'a Settings,
    pub(super) first: &'a Subject,
    pub(super) second: &'a Subject,
    /// Number of the first round's first template.
    pub(super) templates_from: u32,
    /// Processors of the server.
    pub(super) processors: u32,
}

impl Execution<'_> {
    /// Where a version is invoked in this round, with a template of its own for each. Those of a round are pinned to one processor: what
    /// wakes up on another one now and then runs there at another speed.
    fn path(&self, turn: Turn) -> String {
        let (subject, number) = match turn.role {
            Role::First => (self.first, 0),
            Role::Second => (self.second, 1),
            Role::Control => (self.first, 2),
        };
        let round = turn.round as u32;
        let template = self.templates_from + round * TEMPLATES + number;
        let processor = (self.templates_from + round) % self.processors;
        let (function, version) = (&subject.function, subject.version.unwrap_or_default());
        format!(
            "/api/v1/functions/{function}/versions/{version}/invoke?template={template}&processor={processor}"
        )
    }

    /// The mean of so many invocations.
    pub(super) async fn run(&self, turn: Turn, invocations: usize) -> Result<Duration, Fault> {
        let path = self.path(turn);
        let event = self.settings.events[turn.benchmark].text.as_bytes();
        let all = async {
            let mut sum = Duration::ZERO;
            for _ in 0..invocations {
                let content = Some(("application/json", event.to_vec()));
                let answer = self.client.send(Method::POST, &path, content).await;
                let answer = answer.map_err(|error| Fault::Failed(error.to_string()))?;
                let timing = answer.headers.get("server-timing");
                let timing = timing.and_then(|value| value.to_str().ok());
                let name = self.settings.stage.name();
                let taken = timing.and_then(|text| stage(text, name));
                sum += taken.ok_or_else(|| Fault::Failed(format!("no {name} in Server-Timing")))?;
            }
            Ok(sum / invocations as u32)
        };
        timeout(EXECUTION_MAX, all)
            .await
            .unwrap_or(Err(Fault::Interrupted))
    }
}
