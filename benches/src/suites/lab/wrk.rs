//! wrk, which the load generator is compared with: runs it, reads what it prints, and makes percentiles as it does.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use hearth_testkit::figures::cpu_ticks;
use hearth_testkit::processes::signal;
use rustix::process::Signal;

use super::generator::{TURN, Turn};
use crate::process::{Program, bound};

/// How long it would run unless it was interrupted: it takes whole seconds.
const LONGEST: &str = "30s";
/// How often it looks whether it was. It prints what there is then.
const TICK: Duration = Duration::from_millis(100);
/// How long it may take beyond that.
const SPARE: Duration = Duration::from_secs(30);
/// The last line that it prints.
const LAST: &str = "Transfer/sec:";

/// Whether it is here; the reason why not.
pub(super) fn available() -> Result<(), &'static str> {
    let asked = Command::new("wrk")
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match asked {
        // It ends with 1 after it has told its version.
        Ok(_) => Ok(()),
        Err(_) => Err("not installed: scripts/setup.sh bench installs it"),
    }
}

/// One turn, on the first processor.
pub(super) fn turn(url: &str, connections: usize) -> anyhow::Result<Turn> {
    let mut command = bound("taskset")?;
    command
        .args(["-c", "0", "wrk", "--latency", "-t", "1"])
        .args(["-c", &connections.to_string()])
        .args(["-d", LONGEST, url]);
    let (program, printed) = Program::start_and_collect(&mut command)?;
    std::thread::sleep(TURN - TICK / 2);
    let asked = Instant::now();
    let text = loop {
        // Again, if it was not ready to be asked yet.
        signal(program.pid(), Signal::INT)?;
        let text = printed.wait_for(TICK * 2, |text| {
            text.contains(LAST).then(|| text.to_owned())
        });
        if text.is_some() || asked.elapsed() > SPARE {
            break text;
        }
    };
    // It has done its work, and is not gone yet, or waits to be asked for its end.
    let cpu = cpu_ticks(program.pid());
    let text = text.with_context(|| format!("wrk: it said: {}", printed.text()))?;
    read(&text, cpu)
}

fn read(text: &str, cpu: Option<Duration>) -> anyhow::Result<Turn> {
    let value = |key: &str| {
        let mut lines = text.lines();
        let found = lines.find_map(|line| line.trim().strip_prefix(key));
        let found = found.with_context(|| format!("wrk: no {key} in {text}"))?;
        anyhow::Ok(found.trim().to_owned())
    };
    for failed in ["Socket errors:", "Non-2xx"] {
        if let Some(line) = text.lines().find(|line| line.contains(failed)) {
            bail!("wrk: {}", line.trim());
        }
    }
    let mut words = text
        .lines()
        .filter_map(|line| line.split_once(" requests in"));
    let (count, _) = words.next().context("wrk: no count of requests")?;
    let count: f64 = count.trim().parse()?;
    Ok(Turn {
        rate: value("Requests/sec:")?.parse()?,
        p50: microseconds(&value("50%")?)?,
        p99: microseconds(&value("99%")?)?,
        cpu: cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / count),
    })
}

/// Of `12.00us`, `1.20ms` or `1.20s`.
fn microseconds(text: &str) -> anyhow::Result<f64> {
    for (unit, factor) in [("us", 1.0), ("ms", 1e3), ("s", 1e6)] {
        if let Some(number) = text.strip_suffix(unit) {
            return Ok(number.parse::<f64>()? * factor);
        }
    }
    bail!("wrk: {text} is no time")
}

/// The percentiles of latencies in ns as wrk tells them, in whole µs. It takes a latency of at least twice the mean time between a
/// connection's requests for requests that were not sent meanwhile, and counts those, too (`stats_correct` of wrk 4): without the same
/// correction, the tails would not be comparable.
pub(super) fn percentiles<const N: usize>(
    latencies_ns: impl Iterator<Item = u64>,
    interval_us: u64,
    shares: [f64; N],
) -> [f64; N] {
    let mut counts: Vec<u64> = Vec::new();
    for latency in latencies_ns {
        let us = (latency / 1_000) as usize;
        if counts.len() <= us {
            counts.resize(us + 1, 0);
        }
        counts[us] += 1;
    }
    let interval = interval_us.max(1) as usize;
    // Added ones are not corrected themselves, so the longest come last as in wrk, which goes upwards.
    for us in interval * 2..counts.len() {
        let count = counts[us];
        let mut missed = us - interval;
        while count > 0 && missed > interval {
            counts[missed] += count;
            missed -= interval;
        }
    }
    let total: u64 = counts.iter().sum();
    shares.map(|share| {
        let rank = (share * total as f64 + 0.5).round() as u64;
        let mut seen = 0;
        let found = counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        found.unwrap_or(counts.len().saturating_sub(1)) as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "Running 2s test @ http://127.0.0.1:4000/
  1 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   112.52us   40.17us   1.91ms   95.11%
    Req/Sec   139.15k     4.30k  145.53k    71.43%
  Latency Distribution
     50%  108.00us
     75%  116.00us
     90%  126.00us
     99%    1.20ms
  290662 requests in 2.10s, 11.09MB read
Requests/sec: 138412.15
Transfer/sec:      5.28MB
";

    #[test]
    fn what_it_prints_is_read() {
        let turn = read(PRINTED, Some(Duration::from_millis(2_000))).unwrap();
        assert_eq!(
            (turn.rate, turn.p50, turn.p99),
            (138_412.15, 108.0, 1_200.0)
        );
        assert!((turn.cpu.unwrap() - 6.881).abs() < 0.001, "{:?}", turn.cpu);
        let failed = PRINTED.replace(
            "Requests/sec",
            "  Socket errors: connect 0, read 9\nRequests/sec",
        );
        assert!(
            read(&failed, None)
                .unwrap_err()
                .to_string()
                .contains("read 9")
        );
        assert!(read("", None).is_err());
        assert!(microseconds("1.20m").is_err());
    }

    #[test]
    fn a_long_latency_stands_for_requests_that_were_not_sent_meanwhile() {
        // 98 of 10 µs and one of 100 µs: without a correction the 99th percentile is the longest.
        let latencies = || std::iter::repeat_n(10_400, 98).chain([100_900]);
        assert_eq!(percentiles(latencies(), 1_000, [0.5, 0.99]), [10.0, 100.0]);
        // At one request in 10 µs it stands for others of 90, 80 … 20 µs, too: 107 in all.
        let corrected = percentiles(latencies(), 10, [0.5, 0.92, 0.95, 0.99]);
        assert_eq!(corrected, [10.0, 20.0, 50.0, 90.0]);
        assert_eq!(percentiles(std::iter::empty(), 10, [0.5]), [0.0]);
    }
}
