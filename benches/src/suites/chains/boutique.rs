//! The online boutique as it ships, with the reference's mix of tasks: a closed loop of users, each of whom does one thing after the
//! other, and an open loop, whose tasks come whether the ones before are done or not.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use fastrand::Rng;
use serde_json::Value;

use super::CPU_TIME;
use super::mix::{Asked, Mix, Sequence, Way, arrivals};
use crate::client::Connection;
use crate::processes::family_cpu_time;
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server};

/// The workload, its chain and what precedes its functions' names.
const BOUTIQUE: &str = "boutique";
/// Users of the closed loop. They do not wait between tasks, as the reference's 5,000 and 25,000 do for 1 to 10 s.
const USERS: usize = 32;
/// Tasks of the open loop that can be under way. More than that have to wait, and that counts.
const UNDER_WAY: usize = 64;
/// The open loop's rate, as a share of what the closed loop has reached.
const SHARE: f64 = 0.5;
/// How long each turn is, and how often each loop has one.
const TURN: Duration = Duration::from_secs(4);
const QUICK_TURN: Duration = Duration::from_millis(300);
const ROUNDS: usize = 3;

/// The row of all requests together.
const ALL: &str = "all requests";

fn closed() -> String {
    format!("online boutique, the reference\u{2019}s mix, closed loop of {USERS} users")
}

fn closed_hop_by_hop() -> String {
    format!("the boutique\u{2019}s services hop by hop over HTTP, closed loop of {USERS} users")
}

const OPEN: &str =
    "online boutique, the reference\u{2019}s mix, open loop, from when a task is due";

pub(super) fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let server = Server::start(&[])?;
    if let Err(reason) = server.runtime(Runtime::Python)? {
        document.skip("online boutique", reason);
        return Ok(());
    }
    let path = format!("/chain-workloads/{BOUTIQUE}/deploy");
    server.call("POST", &path, &Value::Null)?;
    let shipped = server.call("GET", "/chain-workloads", &Value::Null)?;
    let shipped = shipped["items"].as_array().context("no workloads")?;
    let load = shipped.iter().find(|workload| workload["key"] == BOUTIQUE);
    let mix = Mix::of(&load.context("no boutique")?["load"])?;
    let turn = scale.pick(TURN, QUICK_TURN);

    let (mut by_chain, mut by_http) = (Seen::default(), Seen::default());
    for round in 0..scale.pick(ROUNDS, 1) {
        for (way, seen) in [(Way::Chain, &mut by_chain), (Way::HopByHop, &mut by_http)] {
            seen.extend(&server, || {
                let next = |user, random: &mut Rng| mix.next(way, user, random);
                users(server.address, round, turn, &next)
            })?;
        }
    }
    let tasks = by_chain.tasks_per_second() * SHARE;
    let mut open = Seen::default();
    for round in 0..scale.pick(ROUNDS, 1) {
        let due = arrivals(tasks, turn, &mut Rng::with_seed(round as u64));
        open.extend(&server, || {
            let next = |user, random: &mut Rng| mix.next(Way::Chain, user, random);
            as_due(server.address, &due, &next)
        })?;
    }
    by_chain.conclude(&closed(), document);
    open.conclude(OPEN, document);
    document.figure(OPEN, "offered", tasks, "tasks/s");
    by_http.conclude_without_rate(&closed_hop_by_hop(), document);
    Ok(())
}

/// What a user does next.
type Next<'a> = dyn Fn(usize, &mut Rng) -> Vec<Asked> + Sync + 'a;

/// Each request's latency, by sequence, and how many tasks were done.
#[derive(Default)]
struct Turn {
    samples: [Samples; 6],
    tasks: usize,
}

impl Turn {
    fn extend(&mut self, other: &Self) {
        for (all, more) in self.samples.iter_mut().zip(&other.samples) {
            all.extend(more);
        }
        self.tasks += other.tasks;
    }

    /// Does a task. Its first request began at that instant, if it was due then.
    fn task(
        &mut self,
        connection: &mut Connection,
        asked: Vec<Asked>,
        due: Option<Instant>,
    ) -> anyhow::Result<()> {
        let mut begun = due;
        for Asked { sequence, steps } in asked {
            let began = begun.take().unwrap_or_else(Instant::now);
            for step in &steps {
                let answer = connection.exchange(step)?;
                answer.good().with_context(|| sequence.name())?;
            }
            self.samples[sequence as usize].push(began.elapsed());
        }
        self.tasks += 1;
        Ok(())
    }
}

/// A closed loop: each user begins the next task when the one before is done.
fn users(
    address: SocketAddr,
    round: usize,
    time: Duration,
    next: &Next<'_>,
) -> anyhow::Result<Turn> {
    let until = Instant::now() + time;
    together(USERS, |user| {
        let mut random = Rng::with_seed((round * USERS + user) as u64);
        let mut connection = Connection::open(address)?;
        let mut turn = Turn::default();
        loop {
            turn.task(&mut connection, next(user, &mut random), None)?;
            if Instant::now() >= until {
                return Ok(turn);
            }
        }
    })
}

/// An open loop: each task begins when it is due, or as soon after that as somebody is free to send it.
fn as_due(address: SocketAddr, due: &[Duration], next: &Next<'_>) -> anyhow::Result<Turn> {
    let first = AtomicUsize::new(0);
    let begun = Instant::now();
    together(UNDER_WAY, |user| {
        let mut connection = Connection::open(address)?;
        let mut turn = Turn::default();
        // Relaxed: nothing but the number passes between threads.
        while let Some(offset) = due.get(first.fetch_add(1, Ordering::Relaxed)) {
            let mut random = Rng::with_seed(offset.subsec_nanos().into());
            let asked = next(user, &mut random);
            let due = begun + *offset;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            turn.task(&mut connection, asked, Some(due))?;
        }
        Ok(turn)
    })
}

/// The same on so many threads, which mostly wait.
fn together(
    threads: usize,
    work: impl Fn(usize) -> anyhow::Result<Turn> + Sync,
) -> anyhow::Result<Turn> {
    thread::scope(|scope| {
        let work = &work;
        let all: Vec<_> = (0..threads)
            .map(|number| scope.spawn(move || work(number)))
            .collect();
        let mut turn = Turn::default();
        for one in all {
            let one = one.join();
            turn.extend(&one.map_err(|_| anyhow::anyhow!("a user panicked"))??);
        }
        Ok(turn)
    })
}

/// All turns of a loop.
#[derive(Default)]
struct Seen {
    turn: Turn,
    took: Duration,
    cpu_time: Duration,
}

impl Seen {
    fn extend(
        &mut self,
        server: &Server,
        turn: impl FnOnce() -> anyhow::Result<Turn>,
    ) -> anyhow::Result<()> {
        let (begun, before) = (Instant::now(), family_cpu_time(server.pid())?);
        self.turn.extend(&turn()?);
        self.took += begun.elapsed();
        self.cpu_time += family_cpu_time(server.pid())?.saturating_sub(before);
        Ok(())
    }

    fn tasks_per_second(&self) -> f64 {
        self.turn.tasks as f64 / self.took.as_secs_f64()
    }

    fn conclude(self, category: &str, document: &mut Document) {
        let mut all = Samples::default();
        for samples in &self.turn.samples {
            all.extend(samples);
        }
        let requests = all.len() as f64;
        let rate = requests / self.took.as_secs_f64();
        document.figure(category, ALL, rate, "requests/s");
        let cpu_us = self.cpu_time.as_secs_f64() * 1e6 / requests;
        document.figure(category, ALL, cpu_us, CPU_TIME);
        document.add(category, ALL, all);
        self.conclude_without_rate(category, document);
    }

    /// Where not all requests of the mix are sent, their rate says nothing.
    fn conclude_without_rate(self, category: &str, document: &mut Document) {
        for (sequence, samples) in Sequence::ALL.into_iter().zip(self.turn.samples) {
            // A short turn may lack a rare one.
            if samples.len() > 0 {
                document.add(category, sequence.name(), samples);
            }
        }
    }
}
