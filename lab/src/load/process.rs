//! The load generator as a process of its own: its plan comes in on stdin, its samples go out on stdout.
//!
//! A message is its kind, its length as four bytes little endian, and its content. The process ends its run when stdin is closed, so
//! it does not outlive who started it.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::time::timeout;

use super::drive::{self, Progress};
use super::plan::Plan;
use super::report::Report;
use super::sample::{self, Sample};

/// Longest message either way: a plan with the largest bodies, or one part of the samples.
const MESSAGE_MAX: usize = 64 << 20;

/// Samples are sent in messages of about this size.
const PART: usize = 1 << 20;

/// Longest silence of the process, which tells its progress twice a second. Putting millions of samples in order takes some seconds.
const SILENCE_MAX: Duration = Duration::from_mins(1);

const PLAN: u8 = b'P';
const PROGRESS: u8 = b'G';
const SAMPLES: u8 = b'S';
const REPORT: u8 = b'R';
const ERROR: u8 = b'E';

/// Why there are no samples.
#[derive(Debug, thiserror::Error)]
pub enum GeneratorError {
    /// The process does not start, or its pipes fail.
    #[error("the load generator: {0}")]
    Io(#[from] io::Error),
    /// The process says why.
    #[error("the load generator: {0}")]
    Refused(String),
    /// It has ended without a report, or sent what is no message.
    #[error("the load generator ended without a report")]
    Ended,
    /// It neither ends nor says anything: somebody has stopped it, or the host has no time for it.
    #[error("the load generator has said nothing for {0:?}")]
    Silent(Duration),
}

/// How to start the process.
#[derive(Debug, Clone)]
pub struct Generator {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, with which it calls [`serve`].
    pub arguments: Vec<OsString>,
}

impl Generator {
    /// Runs a plan. When the future is dropped the process is killed.
    ///
    /// # Errors
    /// As [`GeneratorError`] has them; what happens to requests is in their samples.
    pub async fn run(
        &self,
        plan: &Plan,
        tell: impl FnMut(Progress),
    ) -> Result<(Report, Vec<Sample>), GeneratorError> {
        self.run_within(plan, tell, SILENCE_MAX).await
    }

    /// [`Self::run`] with this longest silence.
    async fn run_within(
        &self,
        plan: &Plan,
        mut tell: impl FnMut(Progress),
        silence: Duration,
    ) -> Result<(Report, Vec<Sample>), GeneratorError> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A Ctrl-C at the terminal is for the one that cleans up.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(GeneratorError::Ended);
        };
        let text = serde_json::to_vec(plan).map_err(io::Error::other)?;
        let mut message = vec![PLAN];
        message.extend((text.len() as u32).to_le_bytes());
        message.extend(text);
        let is_silent = |_| GeneratorError::Silent(silence);
        let sent = timeout(silence, input.write_all(&message)).await;
        sent.map_err(is_silent)??;
        let mut samples = Vec::new();
        let report = loop {
            let read = timeout(silence, read_message(&mut output)).await;
            let (kind, content) = read.map_err(is_silent)??;
            match kind {
                PROGRESS => tell(parsed(&content)?),
                REPORT => break parsed(&content)?,
                ERROR => {
                    let reason = String::from_utf8_lossy(&content).into_owned();
                    return Err(GeneratorError::Refused(reason));
                }
                SAMPLES => {
                    let mut rest = content.as_slice();
                    while !rest.is_empty() {
                        samples.push(sample::decode(&mut rest).ok_or(GeneratorError::Ended)?);
                    }
                }
                _ => return Err(GeneratorError::Ended),
            }
        };
        // Kept open up to here, because its end cancels the run.
        drop(input);
        timeout(silence, child.wait()).await.map_err(is_silent)??;
        Ok((report, samples))
    }
}

/// A message's kind and content.
async fn read_message(
    output: &mut (impl AsyncRead + Unpin),
) -> Result<(u8, Vec<u8>), GeneratorError> {
    let Ok(kind) = output.read_u8().await else {
        return Err(GeneratorError::Ended);
    };
    let length = output.read_u32_le().await? as usize;
    if length > MESSAGE_MAX {
        return Err(GeneratorError::Ended);
    }
    let mut content = vec![0; length];
    output.read_exact(&mut content).await?;
    Ok((kind, content))
}

fn parsed<T: serde::de::DeserializeOwned>(content: &[u8]) -> Result<T, GeneratorError> {
    serde_json::from_slice(content).map_err(|_| GeneratorError::Ended)
}

/// The process itself: takes a plan from stdin, runs it, and sends what came of it to stdout.
///
/// # Errors
/// Pipes that fail. A plan that is refused, or cannot run, is told as a message.
pub fn serve() -> io::Result<()> {
    let input = io::stdin();
    let mut output = io::stdout().lock();
    let done = read_plan(&mut input.lock()).and_then(|plan| {
        let tell = &mut |progress: Progress| {
            // Who started it may be gone, which the closed stdin tells too.
            let _ = send(&mut io::stdout(), PROGRESS, &as_json(&progress));
        };
        let outcome =
            drive::run(&plan, Some(input.as_fd()), tell).map_err(|error| error.to_string());
        outcome.map(|outcome| (Report::of(&plan, &outcome), outcome.samples))
    });
    match done {
        Err(reason) => send(&mut output, ERROR, reason.as_bytes()),
        Ok((report, samples)) => {
            let mut part = Vec::new();
            for one in &samples {
                sample::encode(one, &mut part);
                if part.len() >= PART {
                    send(&mut output, SAMPLES, &part)?;
                    part.clear();
                }
            }
            send(&mut output, SAMPLES, &part)?;
            send(&mut output, REPORT, &as_json(&report))
        }
    }
}

fn as_json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

fn send(output: &mut impl Write, kind: u8, content: &[u8]) -> io::Result<()> {
    output.write_all(&[kind])?;
    output.write_all(&(content.len() as u32).to_le_bytes())?;
    output.write_all(content)?;
    output.flush()
}

fn read_plan(input: &mut impl Read) -> Result<Plan, String> {
    let mut head = [0; 5];
    input
        .read_exact(&mut head)
        .map_err(|error| error.to_string())?;
    let [kind, length @ ..] = head;
    let length = u32::from_le_bytes(length) as usize;
    if kind != PLAN || length > MESSAGE_MAX {
        return Err("no plan on stdin".to_owned());
    }
    let mut text = vec![0; length];
    input
        .read_exact(&mut text)
        .map_err(|error| error.to_string())?;
    let plan: Plan = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    plan.check().map_err(|error| error.to_string())?;
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Request, Schedule, Trust};

    fn plan() -> Plan {
        Plan {
            requests: vec![Request {
                method: "GET".to_owned(),
                url: "http://127.0.0.1:9/".to_owned(),
                headers: Vec::new(),
                body: String::new(),
            }],
            schedule: Schedule::Closed {
                duration_ms: None,
                count: Some(1),
            },
            connections: 1,
            keep_alive: 1,
            timeout_ms: 1_000,
            capture_bytes: 0,
            faults_max: None,
            processor: None,
            trust: Trust::default(),
        }
    }

    async fn run(program: &str, arguments: &[&str]) -> GeneratorError {
        let generator = Generator {
            program: program.into(),
            arguments: arguments.iter().map(OsString::from).collect(),
        };
        let plan = plan();
        let ran = generator.run_within(&plan, |_| {}, Duration::from_millis(200));
        ran.await.expect_err("it is no load generator")
    }

    #[tokio::test]
    async fn a_process_that_says_nothing_is_not_waited_for_for_ever() {
        // It takes the plan and neither answers nor ends, as a stopped one.
        let error = run("/bin/sh", &["-c", "exec sleep 1000"]).await;
        assert!(matches!(error, GeneratorError::Silent(_)), "{error}");
        // It begins a message and says no more.
        let error = run("/bin/sh", &["-c", "printf G; exec sleep 1000"]).await;
        assert!(matches!(error, GeneratorError::Silent(_)), "{error}");
        let error = run("/bin/sh", &["-c", "head -c 5 >/dev/null"]).await;
        assert!(matches!(error, GeneratorError::Ended), "{error}");
        let error = run("/nowhere/generator", &[]).await;
        assert!(matches!(error, GeneratorError::Io(_)), "{error}");
    }
}
