//! The sampling task and access to its samples.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::host::{self, Ticks};
use super::rates::Rates;
use super::{Board, Host, Rate};
use crate::engine::Engine;
use crate::history::History;

/// Between two samples.
const PERIOD: Duration = Duration::from_secs(1);

/// Seconds of requests and errors that are kept for the small charts: five minutes.
const KEPT_SECONDS: usize = 300;

/// The key of all functions together among the rates. No function has this id.
const ALL: i64 = 0;

/// The state of the node and its functions at one time.
#[derive(Debug, Default)]
pub struct Sample {
    /// The host.
    pub host: Host,
    /// Requests now, of all functions.
    pub rate: Rate,
    /// Finished invocations in each of the last seconds, and those among them that did not succeed; oldest first.
    pub seconds: Vec<(u32, u32)>,
    /// Invocations that ever finished, and those among them that did not succeed.
    pub lifetime: (u64, u64),
    /// Rates by row id; functions without requests are omitted.
    rates: HashMap<i64, Rate>,
    board: OnceLock<Arc<Board>>,
}

/// Samples of the node. Cheap to clone.
#[derive(Clone)]
pub struct Sampler {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    history: History,
    samples: watch::Sender<Arc<Sample>>,
    started: Timestamp,
}

impl Sampler {
    /// Starts sampling on the current tokio runtime, for as long as one of its clones lives.
    pub fn start(engine: Engine, history: History, data_dir: PathBuf) -> Self {
        let inner = Arc::new(Inner {
            engine,
            history,
            samples: watch::Sender::new(Arc::default()),
            started: Timestamp::now(),
        });
        tokio::spawn(run(Arc::downgrade(&inner), data_dir));
        Self { inner }
    }

    /// When the server started: a watcher that comes back knows by it that it is another run of the server.
    pub fn started(&self) -> Timestamp {
        self.inner.started
    }

    /// The newest sample.
    pub fn sample(&self) -> Arc<Sample> {
        self.inner.samples.borrow().clone()
    }

    /// Waits for samples. One that is not taken in time is replaced by the next.
    pub fn watch(&self) -> watch::Receiver<Arc<Sample>> {
        self.inner.samples.subscribe()
    }

    /// The board of a sample: built by the first caller, shared by all.
    pub fn board(&self, sample: &Sample) -> Arc<Board> {
        sample
            .board
            .get_or_init(|| Arc::new(self.new_board(sample)))
            .clone()
    }

    /// The board of this moment, for a page that shall show what was changed just before it.
    pub fn board_now(&self) -> Board {
        self.new_board(&self.sample())
    }

    fn new_board(&self, sample: &Sample) -> Board {
        Board::new(&self.inner.engine, &self.inner.history, &sample.rates)
    }
}

/// What is remembered from sample to sample.
#[derive(Default)]
struct Memory {
    ticks: Option<Ticks>,
    rates: Rates,
    counted: Option<(u64, u64)>,
    seconds: VecDeque<(u32, u32)>,
}

async fn run(live: Weak<Inner>, data_dir: PathBuf) {
    let began = Instant::now();
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut memory = Memory::default();
    loop {
        ticks.tick().await;
        let Some(live) = live.upgrade() else {
            return;
        };
        // The counters of the run before are read by then: they must not seem to fall.
        live.history.ready().await;
        let sample = sample(&live.history, &data_dir, began.elapsed(), &mut memory);
        live.samples.send_replace(Arc::new(sample));
    }
}

fn sample(history: &History, data_dir: &Path, now: Duration, memory: &mut Memory) -> Sample {
    let (host, ticks) = host::read(data_dir, memory.ticks);
    memory.ticks = ticks;
    let lifetime = history.lifetime();
    let counts = history.counts().into_iter();
    let mut counts: HashMap<i64, (u64, u64)> = counts
        .map(|(id, requests, errors)| (id, (requests, errors)))
        .collect();
    counts.insert(ALL, lifetime);
    let mut rates = memory.rates.advance(now, counts);
    let before = memory.counted.replace(lifetime).unwrap_or(lifetime);
    if memory.seconds.len() >= KEPT_SECONDS {
        memory.seconds.pop_front();
    }
    let grown =
        |now: u64, before: u64| u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX);
    memory
        .seconds
        .push_back((grown(lifetime.0, before.0), grown(lifetime.1, before.1)));
    Sample {
        host,
        rate: rates.remove(&ALL).unwrap_or_default(),
        seconds: memory.seconds.iter().copied().collect(),
        lifetime,
        rates,
        board: OnceLock::new(),
    }
}
