//! Requests over HTTP: the first one to a function without an instance, and warm ones beside a bare axum handler.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::Scale;
use crate::http::{Connection, ServerProcess, deploy, request};
use crate::report::Report;
use crate::samples::Samples;

/// Its instance ends 20 ms after the request: the timer's signal kills it, with no thread that would cost a start.
const ONE_SHOT: &str = "import json, asyncio, http.client, http.server, signal\n\
    def handler(event, context):\n    signal.setitimer(signal.ITIMER_REAL, 0.02)\n    return event\n";
/// Its instance is gone this long after the answer.
const INSTANCE_LIFE: Duration = Duration::from_millis(40);
const ECHO: &str = "def handler(event, context):\n    return event\n";
const INVOKE: &str = "/api/v1/functions/echo/invoke";
/// Requests on one side before the other has its turn.
const TURN: usize = 100;
const CONNECTIONS: usize = 16;
/// How long the history may take to be written after the last answer.
const HISTORY: Duration = Duration::from_secs(30);

/// An event of 1 KB of JSON.
fn event() -> Vec<u8> {
    let filler = "x".repeat(1024 - br#"{"filler":""}"#.len());
    json!({ "filler": filler }).to_string().into_bytes()
}

/// First requests over HTTP to a function that has no instance.
pub fn first_requests(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let server = ServerProcess::hearth()?;
    deploy(server.address, "one-shot", ONE_SHOT, &json!({}))?;
    let call = request("POST", "/api/v1/functions/one-shot/invoke", &event());
    let mut connection = Connection::open(server.address)?;
    let mut samples = Samples::default();
    let mut warm = 0;
    while samples.len() < scale.first_requests {
        let begun = Instant::now();
        let answer = connection.exchange(&call)?;
        let elapsed = begun.elapsed();
        if answer.status != 200 {
            bail!("{} {}", answer.status, String::from_utf8_lossy(answer.body));
        }
        if answer.head.contains("x-hearth-start: fork") {
            samples.push(elapsed);
        } else {
            warm += 1;
            if warm > scale.first_requests * 2 + 10 {
                bail!("the instances do not end");
            }
        }
        std::thread::sleep(INSTANCE_LIFE);
    }
    report.add(
        "first request",
        "first HTTP request without an instance, 1 KB",
        samples,
    );
    Ok(())
}

/// Warm requests at one and at 16 connections.
pub fn run(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let hearth = ServerProcess::hearth()?;
    let bare = ServerProcess::bare_axum()?;
    deploy(hearth.address, "echo", ECHO, &json!({}))?;
    one_connection(scale, report, &hearth, &bare)?;
    let before = recorded(hearth.address)?;
    loaded(scale, report, hearth.address, "hearth", INVOKE)?;
    let expected = before + scale.load as u64;
    let deadline = Instant::now() + HISTORY;
    while recorded(hearth.address)? < expected {
        if Instant::now() > deadline {
            bail!(
                "the history has {} of {expected} invocations",
                recorded(hearth.address)?
            );
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    report.figure(
        "warm",
        "history rows written for the loaded run",
        scale.load as f64,
        "of all",
    );
    loaded(scale, report, bare.address, "bare axum", "/")
}

fn one_connection(
    scale: Scale,
    report: &mut Report,
    hearth: &ServerProcess,
    bare: &ServerProcess,
) -> anyhow::Result<()> {
    let (ours, theirs) = (
        request("POST", INVOKE, &event()),
        request("POST", "/", &event()),
    );
    let (mut to_hearth, mut to_bare) = (
        Connection::open(hearth.address)?,
        Connection::open(bare.address)?,
    );
    let (mut our_samples, mut their_samples) = (Samples::default(), Samples::default());
    while our_samples.len() < scale.requests {
        measure(
            &mut to_hearth,
            &ours,
            TURN.min(scale.requests),
            &mut our_samples,
        )?;
        measure(
            &mut to_bare,
            &theirs,
            TURN.min(scale.requests),
            &mut their_samples,
        )?;
    }
    let ours = report.add(
        "warm",
        "hearth: warm invoke, 1 KB, 1 connection",
        our_samples,
    );
    let theirs = report.add("warm", "bare axum: echo, 1 KB, 1 connection", their_samples);
    report.figure(
        "warm",
        "warm invoke / bare axum at 1 connection, p50",
        ours as f64 / theirs.max(1) as f64,
        "×",
    );
    Ok(())
}

fn measure(
    connection: &mut Connection,
    request: &[u8],
    count: usize,
    samples: &mut Samples,
) -> anyhow::Result<()> {
    for _ in 0..count {
        let begun = Instant::now();
        let answer = connection.exchange(request)?;
        samples.push(begun.elapsed());
        if answer.status != 200 {
            bail!("{} {}", answer.status, String::from_utf8_lossy(answer.body));
        }
    }
    Ok(())
}

fn loaded(
    scale: Scale,
    report: &mut Report,
    address: SocketAddr,
    who: &str,
    path: &str,
) -> anyhow::Result<()> {
    let call = request("POST", path, &event());
    let begun = Instant::now();
    let samples = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let call = &call;
                scope.spawn(move || -> anyhow::Result<Samples> {
                    let mut samples = Samples::default();
                    let mut connection = Connection::open(address)?;
                    measure(
                        &mut connection,
                        call,
                        scale.load / CONNECTIONS,
                        &mut samples,
                    )?;
                    Ok(samples)
                })
            })
            .collect();
        let mut all = Samples::default();
        for thread in threads {
            all.extend(
                &thread
                    .join()
                    .map_err(|_| anyhow::anyhow!("a client panicked"))??,
            );
        }
        anyhow::Ok(all)
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let rate = samples.len() as f64 / seconds;
    report.add(
        "warm",
        &format!("{who}: 1 KB, {CONNECTIONS} connections"),
        samples,
    );
    report.figure(
        "warm",
        &format!("{who}: requests at {CONNECTIONS} connections"),
        rate,
        "/s",
    );
    Ok(())
}

/// How many invocations the history has, by its own statistics.
fn recorded(address: SocketAddr) -> anyhow::Result<u64> {
    let mut connection = Connection::open(address)?;
    let answer = connection.exchange(&request(
        "GET",
        "/api/v1/functions/echo/stats?window=1h",
        b"",
    ))?;
    let stats: Value = serde_json::from_slice(answer.body)?;
    stats["count"].as_u64().context("stats without a count")
}
