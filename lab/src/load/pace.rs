//! Decides when the next request is sent.

use super::arrivals::Times;
use super::engine::Engine;
use super::plan::{Plan, REQUESTS_MAX, Round, Schedule};

/// When to send next.
pub(super) enum Next {
    /// At this time.
    At(u64),
    /// After an answer.
    Answer,
    /// Never.
    Done,
}

/// What is to be sent.
enum Rest<'a> {
    Closed,
    Open {
        times: Times,
        next: u64,
    },
    Bursts {
        rounds: &'a [Round],
        round: usize,
        burst: usize,
        due: Option<u64>,
    },
}

/// Decides when the next request is sent.
pub(super) struct Pace<'a> {
    rest: Rest<'a>,
    connections: usize,
    /// Stops sending at this time.
    until: u64,
    /// Stops sending after so many.
    count: u64,
    sent: u64,
    bursts: usize,
    is_done: bool,
    /// Requests of an open loop that were due and are not sent.
    pub(super) unsent: u64,
    /// When the last one was due, in ns from the begin.
    pub(super) planned: u64,
}

impl<'a> Pace<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let limit = |ms: Option<u64>| ms.map_or(u64::MAX, |ms| ms * 1_000_000);
        let (rest, until, count) = match &plan.schedule {
            Schedule::Closed { duration_ms, count } => (Rest::Closed, limit(*duration_ms), *count),
            Schedule::Open {
                arrivals,
                duration_ms,
                count,
            } => {
                let mut times = Times::new(*arrivals);
                let next = times.next();
                (Rest::Open { times, next }, limit(*duration_ms), *count)
            }
            Schedule::Bursts { rounds } => {
                let bursts = rounds.iter().flat_map(|round| &round.bursts);
                let count = bursts.map(|burst| burst.size as u64).sum();
                let rest = Rest::Bursts {
                    rounds,
                    round: 0,
                    burst: 0,
                    due: None,
                };
                (rest, u64::MAX, Some(count))
            }
        };
        Self {
            rest,
            connections: plan.connections,
            until,
            count: count.unwrap_or(REQUESTS_MAX),
            sent: 0,
            bursts: 0,
            is_done: false,
            unsent: 0,
            planned: 0,
        }
    }

    /// Requests in all, where that is known.
    pub(super) fn total(&self) -> Option<u64> {
        (self.until == u64::MAX).then_some(self.count)
    }

    /// Sends what is due.
    pub(super) fn send(&mut self, engine: &mut Engine) -> Next {
        if self.is_done {
            return Next::Done;
        }
        match &self.rest {
            Rest::Closed => self.send_closed(engine),
            Rest::Open { .. } => self.send_open(engine),
            Rest::Bursts { .. } => self.send_bursts(engine),
        }
    }

    /// Requests are taken in turn.
    fn start(&mut self, engine: &mut Engine, intended: Option<u64>) {
        let request = (self.sent % engine.requests() as u64) as usize;
        engine.start(request, 0, intended);
        self.sent += 1;
    }

    fn send_closed(&mut self, engine: &mut Engine) -> Next {
        loop {
            if self.sent >= self.count || engine.now() >= self.until {
                self.is_done = true;
                return Next::Done;
            }
            // One that has failed already is counted before the next is sent.
            if engine.in_flight >= self.connections || !engine.finished.is_empty() {
                return Next::Answer;
            }
            self.start(engine, None);
        }
    }

    fn send_open(&mut self, engine: &mut Engine) -> Next {
        loop {
            let Rest::Open { times, next } = &mut self.rest else {
                return Next::Done;
            };
            let due = *next;
            if self.sent >= self.count || due >= self.until {
                self.is_done = true;
                return Next::Done;
            }
            let now = engine.now();
            if due > now {
                return Next::At(due);
            }
            if engine.in_flight >= self.connections {
                if now < self.until {
                    // Looked at again at the end, when what is due is no longer sent.
                    return if self.until == u64::MAX {
                        Next::Answer
                    } else {
                        Next::At(self.until)
                    };
                }
                let left = self.count - self.sent;
                while self.unsent < left && *next < self.until {
                    self.planned = *next;
                    self.unsent += 1;
                    *next = times.next();
                }
                self.is_done = true;
                return Next::Done;
            }
            *next = times.next();
            self.planned = due;
            self.start(engine, Some(due));
        }
    }

    fn send_bursts(&mut self, engine: &mut Engine) -> Next {
        let Rest::Bursts {
            rounds,
            round,
            burst,
            due,
        } = &mut self.rest
        else {
            return Next::Done;
        };
        loop {
            if engine.in_flight > 0 {
                return Next::Answer;
            }
            let Some(this) = rounds.get(*round) else {
                self.is_done = true;
                return Next::Done;
            };
            let now = engine.now();
            // The pause is before the first burst of a round; the others follow when the one before is answered.
            let pause = if *burst == 0 {
                this.pause_ms * 1_000_000
            } else {
                0
            };
            let at = *due.get_or_insert(now + pause);
            if at > now {
                return Next::At(at);
            }
            *due = None;
            let Some(one) = this.bursts.get(*burst) else {
                (*round, *burst) = (*round + 1, 0);
                continue;
            };
            for _ in 0..one.size {
                engine.start(one.request, self.bursts, Some(at));
            }
            self.sent += one.size as u64;
            self.planned = at;
            self.bursts += 1;
            *burst += 1;
        }
    }
}
