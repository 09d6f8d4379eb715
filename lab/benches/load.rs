//! What the load generator adds: `cargo bench -p hearth-lab`. Beside wrk, where it is installed, against the same trivial server, in turns.
//! The server is a process of its own on the last processor, the load generators take turns on the first.
#![allow(clippy::print_stdout, reason = "a command-line program")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use hearth_lab::load::{Arrivals, Plan, Report, Request, Schedule, Trust, run};
use hearth_lab::statistics::quantile::median;
use rustix::event::epoll;
use rustix::thread::{CpuSet, sched_setaffinity};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Turns of each load generator; the figures are medians of them.
const TURNS: usize = 5;

/// Length of a turn.
const SECONDS: u64 = 3;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|first| first == "server") {
        return serve();
    }
    let mut server = Server::start()?;
    let has_wrk = Command::new("wrk")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    println!(
        "{:24}{:>14}{:>10}{:>10}{:>12}",
        "closed loop", "requests/s", "p50 µs", "p99 µs", "CPU µs"
    );
    for connections in [1, 16, 100] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            ours.push(closed(&server.url, connections)?);
            if has_wrk {
                theirs.push(wrk(&server.url, connections)?);
            }
        }
        row(&format!("lab, {connections}"), &ours);
        if has_wrk {
            row(&format!("wrk, {connections}"), &theirs);
        }
    }
    println!(
        "{:24}{:>14}{:>10}{:>10}",
        "open loop, per second", "rate error %", "late p50", "p99 µs"
    );
    for rate in [100.0, 1_000.0, 5_000.0, 10_000.0] {
        for arrivals in [
            Arrivals::Fixed { rate },
            Arrivals::Exponential { rate, seed: 1 },
        ] {
            let schedule = Schedule::Open {
                arrivals,
                duration_ms: Some(SECONDS * 1_000),
                count: None,
            };
            let report = report(&server.url, 100, schedule)?;
            let late = report
                .send_delay_ns
                .map_or((0.0, 0.0), |tail| (tail.median, tail.p99));
            let kind = if matches!(arrivals, Arrivals::Fixed { .. }) {
                "fixed"
            } else {
                "exponential"
            };
            println!(
                "{:24}{:>14.3}{:>10.1}{:>10.1}",
                format!("{kind}, {rate}"),
                report.rate_error.unwrap_or(f64::NAN) * 100.0,
                late.0 / 1e3,
                late.1 / 1e3
            );
        }
    }
    server.child.kill()?;
    server.child.wait()?;
    Ok(())
}

/// What a turn has shown; latencies and processor time of a request in µs.
struct Turn {
    rate: f64,
    p50: f64,
    p99: f64,
    processor: Option<f64>,
}

fn row(name: &str, turns: &[Turn]) {
    let of = |figure: fn(&Turn) -> f64| {
        let mut all: Vec<f64> = turns.iter().map(figure).collect();
        median(&mut all).unwrap_or(f64::NAN)
    };
    let processor = of(|turn| turn.processor.unwrap_or(f64::NAN));
    println!(
        "{name:24}{:>14.0}{:>10.1}{:>10.1}{processor:>12.2}",
        of(|turn| turn.rate),
        of(|turn| turn.p50),
        of(|turn| turn.p99),
    );
}

fn report(url: &str, connections: usize, schedule: Schedule) -> anyhow::Result<Report> {
    let plan = Plan {
        requests: vec![Request {
            method: "GET".to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
            body: String::new(),
        }],
        schedule,
        connections,
        keep_alive: connections,
        timeout_ms: 10_000,
        capture_bytes: 0,
        faults_max: Some(0),
        processor: Some(0),
        trust: Trust::default(),
    };
    plan.check()?;
    let outcome = run(&plan, None, &mut |_| {})?;
    Ok(Report::of(&plan, &outcome))
}

fn closed(url: &str, connections: usize) -> anyhow::Result<Turn> {
    let schedule = Schedule::Closed {
        duration_ms: Some(SECONDS * 1_000),
        count: None,
    };
    let report = report(url, connections, schedule)?;
    let tail = report
        .to_last_byte
        .uncorrected_ns
        .unwrap_or_else(|| unreachable!("faults end the run"));
    Ok(Turn {
        rate: report.rate,
        p50: tail.median / 1e3,
        p99: tail.p99 / 1e3,
        processor: Some(report.processor_ns as f64 / 1e3 / report.sent as f64),
    })
}

fn wrk(url: &str, connections: usize) -> anyhow::Result<Turn> {
    let output = Command::new("taskset")
        .args([
            "-c",
            "0",
            "wrk",
            "--latency",
            "-t",
            "1",
            "-c",
            &connections.to_string(),
        ])
        .args(["-d", &format!("{SECONDS}s"), url])
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(key));
        line.map(|rest| rest.trim().to_owned())
            .ok_or_else(|| anyhow::anyhow!("wrk: no {key} in {text}"))
    };
    Ok(Turn {
        rate: value("Requests/sec:")?.parse()?,
        p50: microseconds(&value("50%")?)?,
        p99: microseconds(&value("99%")?)?,
        processor: None,
    })
}

/// Of `12.00us`, `1.20ms` or `1.20s`.
fn microseconds(text: &str) -> anyhow::Result<f64> {
    for (unit, factor) in [("us", 1.0), ("ms", 1e3), ("s", 1e6)] {
        if let Some(number) = text.strip_suffix(unit) {
            return Ok(number.parse::<f64>()? * factor);
        }
    }
    anyhow::bail!("wrk: {text} is no time")
}

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> anyhow::Result<Self> {
        let mut child = Command::new("/proc/self/exe")
            .arg("server")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut url)?;
        }
        Ok(Self {
            child,
            url: url.trim().to_owned(),
        })
    }
}

/// Answers whatever it reads, with epoll on one thread: less per request than any client does.
fn serve() -> anyhow::Result<()> {
    let last = thread::available_parallelism().map_or(1, usize::from) - 1;
    let mut set = CpuSet::new();
    set.set(last);
    sched_setaffinity(None, &set)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("http://{}/", listener.local_addr()?);
    std::io::stdout().flush()?;
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(
        &epoll,
        &listener,
        epoll::EventData::new_u64(u64::MAX),
        epoll::EventFlags::IN,
    )?;
    let mut connections: Vec<Option<TcpStream>> = Vec::new();
    let mut events = Vec::with_capacity(256);
    let mut buffer = [0; 4_096];
    loop {
        events.clear();
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let number = event.data.u64();
            if number == u64::MAX {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                let data = epoll::EventData::new_u64(connections.len() as u64);
                epoll::add(&epoll, &stream, data, epoll::EventFlags::IN)?;
                connections.push(Some(stream));
                continue;
            }
            let place = &mut connections[number as usize];
            let Some(stream) = place else { continue };
            let is_good = matches!(stream.read(&mut buffer), Ok(read) if read > 0)
                && stream.write_all(ANSWER).is_ok();
            if !is_good {
                *place = None;
            }
        }
    }
}
