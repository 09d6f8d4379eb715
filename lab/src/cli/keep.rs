//! `hearth lab run --keep`.

use std::fs;
use std::sync::Mutex;

use anyhow::Context as _;
use hyper::{Method, StatusCode};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Duration, sleep};

use super::agent::temporary;
use super::job::tell;
use super::run::block_on;
use super::{COULD_NOT_RUN, FELL_SHORT};
use crate::job::Job;
use crate::job::agent::{Agent, Assigned, is_final};
use crate::job::endpoints::Endpoints;
use crate::load::process::Generator;
use crate::platform::client::{Client, ClientError};
use crate::store::Source;

/// Between two attempts while another experiment runs.
const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Creates the experiment on the server, runs it as an agent does, and prints what came of it and where it is.
pub(super) fn keep(
    config: &Value,
    client: Client,
    generator: Generator,
    store: Source,
    processor: Option<usize>,
) -> anyhow::Result<u8> {
    let text = config.to_string();
    Job::read(text.as_bytes())?;
    // Suites name directories below the present one.
    let trees = std::env::current_dir()?;
    let out = temporary().context("a temporary directory")?;
    let agent = Agent {
        client,
        generator,
        out: out.clone(),
        trees: Some(trees),
        endpoints: Endpoints::Any,
        processor,
        store,
    };
    let last = Mutex::new(None);
    let done = block_on(async |cancelled| {
        let assigned = taken(&agent.client, &text, cancelled.clone()).await?;
        let say = |line: &str| eprintln!("{line}");
        let follow = |progress: &_| tell(&last, progress);
        let ran = agent.run(&assigned, cancelled, &say, &follow).await;
        Ok((assigned.id, ran))
    });
    // The run has removed its own.
    let _ = fs::remove_dir(out);
    let (id, ran) = done?;
    print!("{}", ran.text);
    println!("{}", agent.client.url(&format!("/lab/{id}")));
    Ok(match ran.error {
        Some(error) => {
            eprintln!("hearth lab: {error}");
            COULD_NOT_RUN
        }
        None if ran.fell_short => FELL_SHORT,
        None => 0,
    })
}

/// Waits for its turn: one experiment runs at a time.
async fn taken(
    client: &Client,
    config: &str,
    mut cancelled: watch::Receiver<bool>,
) -> anyhow::Result<Assigned> {
    let mut has_told = false;
    loop {
        let content = Some(("application/json", config.as_bytes().to_vec()));
        let made = client.send(Method::POST, "/api/v1/experiments/taken", content);
        match made.await {
            Ok(made) => return Ok(serde_json::from_value(made.json())?),
            // Another one runs. And a wait of hours does not end with one lost connection.
            Err(error) if has_told && !is_final(&error) || is_busy(&error) => {
                if !has_told {
                    eprintln!("{error}");
                    has_told = true;
                }
            }
            Err(error) => return Err(error.into()),
        }
        tokio::select! {
            () = sleep(AGAIN_AFTER) => {}
            Ok(_) = cancelled.wait_for(|is_cancelled| *is_cancelled) => anyhow::bail!("cancelled"),
        }
    }
}

fn is_busy(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { status, .. } if *status == StatusCode::CONFLICT)
}
