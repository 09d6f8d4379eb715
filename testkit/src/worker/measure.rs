//! Measures a worker outside of any sandbox: fork to READY, the processor time of an echo, memory.
#![allow(clippy::print_stdout, reason = "its output is for the reader")]

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::figures::{children, cpu_time, private_kib, pss_kib};

/// Requests of one measurement of the echo.
const REQUESTS: u32 = 20_000;

/// Measures a function that answers with its event. The number of starts is the program's first argument.
pub fn run(source: &str) {
    let starts = std::env::args()
        .nth(1)
        .map_or(1000, |text| text.parse().expect("a number of starts"));
    starts_to_ready(source, starts);
    echo(source);
    memory(source);
}

fn starts_to_ready(source: &str, starts: usize) {
    let mut template = super::boot(source);
    let (mut ready, mut first) = (Vec::new(), Vec::new());
    for _ in 0..starts {
        let (mut instance, descriptors) = super::prepare_instance();
        let begin = Instant::now();
        instance.go();
        template.send_fork(&descriptors.each_ref().map(AsFd::as_fd));
        instance.wait_ready().expect("ready");
        ready.push(begin.elapsed());
        instance.call(&json!({"a": 1}));
        first.push(begin.elapsed());
        instance.kill(Signal::KILL);
        assert_eq!(template.message()["type"], "exited");
    }
    print("FORK to READY", ready);
    print("FORK to the first answer", first);
}

fn print(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "{name}, ms, {} starts: p50 {:.3}  p90 {:.3}  p99 {:.3}",
        times.len(),
        at(0.5),
        at(0.9),
        at(0.99)
    );
}

fn echo(source: &str) {
    let mut template = super::boot(source);
    let mut instance = template.fork();
    let event = json!({"text": "x".repeat(1000)}).to_string();
    let mut run = |count: u32| {
        for _ in 0..count {
            instance.request(hearth_abi::Trigger::Invoke, None, event.as_bytes(), None);
        }
    };
    run(1000);
    let pid = children(template.pid()).expect("it runs")[0];
    let cpu = || cpu_time(pid).expect("it runs");
    let (begin, before) = (Instant::now(), cpu());
    run(REQUESTS);
    let (wall, cpu) = (begin.elapsed(), cpu() - before);
    println!(
        "echo of 1 KB, {REQUESTS} requests one after the other: {:.1} µs each, {:.1} µs of the worker's processor time",
        wall.as_secs_f64() * 1e6 / f64::from(REQUESTS),
        cpu.as_secs_f64() * 1e6 / f64::from(REQUESTS),
    );
}

fn memory(source: &str) {
    let mut template = super::boot(source);
    let mut instances: Vec<_> = (0..100).map(|_| template.fork()).collect();
    for instance in &mut instances {
        instance.call(&json!({"a": 1}));
    }
    let sum = |figure: fn(u32) -> std::io::Result<u64>| -> u64 {
        let figures = instances.iter().map(|instance| figure(instance.pid));
        figures.map(|figure| figure.expect("it runs")).sum()
    };
    let (pss, private) = (sum(pss_kib), sum(private_kib));
    println!(
        "100 instances after a request: {} KiB PSS, {} KiB private each",
        pss / 100,
        private / 100
    );
}
