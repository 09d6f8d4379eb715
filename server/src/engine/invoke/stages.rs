//! Where an exchange's time went: the worker's stamps, as far as they agree with the host's clock. Pure.
//!
//! - `send`: until the handler is called. Writing the request, the worker's wake-up, its reading and decoding.
//! - `run`: the handler, until it returns or raises; until its first piece where it streams its answer.
//! - `recv`: until the answer is read. Encoding, the server's wake-up, and all of a streamed body after its first piece.
//!
//! They follow each other without a gap, so that they and the stages before them add up to the total at most; what little
//! the total has more was spent between the stages, or rounded down.
//!
//! The host alone cannot tell where `send` ends: it learns of the answer's first frame only when it has a processor
//! again, and between its bell and its next look at the clock the handler may have run to its end. The worker can, but
//! a hostile one writes what it likes: its stamps count only if
//! `begun ≤ taken ≤ began ≤ ended ≤ answered`, where the outer two are the host's. So whatever a worker claims, it can only
//! move time between the stages of its own invocation, and the host's own instants take over if it claims nonsense.

use std::time::Duration;

use hearth_abi::{Counters, Stamps};

use crate::model::InvocationCounters;

/// The host's own instants, in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HostInstants {
    /// Before the request's first byte was written: no worker can have taken it sooner.
    pub begun: u64,
    /// Before the bell rang for its last byte; none until it is written whole.
    pub sent: Option<u64>,
    /// When the answer's first frame was read, if it was.
    pub answered: Option<u64>,
    /// The end, or as far as it has come.
    pub now: u64,
}

impl HostInstants {
    /// A request that is about to be written.
    pub(super) fn begun(now: u64) -> Self {
        Self {
            begun: now,
            sent: None,
            answered: None,
            now,
        }
    }

    /// The answer's first frame was read.
    pub(super) fn answer(&mut self, now: u64) {
        self.answered = Some(now);
        self.now = now;
    }
}

/// What becomes of the time from [`HostInstants::begun`] to [`HostInstants::now`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spans {
    pub send: Duration,
    pub run: Duration,
    pub recv: Duration,
}

/// Where the handler's time begins and ends by the stamps. `None`: they contradict the host's clock or each other.
pub(super) fn checked(stamps: Stamps, host: HostInstants) -> Option<(u64, u64)> {
    let Stamps {
        taken,
        began,
        ended,
    } = stamps;
    let Some(answered) = host.answered else {
        // No answer: how far the worker came. Words of an earlier request lie before this one began.
        let reached = if began == 0 { taken } else { began };
        return (host.begun <= taken && taken <= reached && reached <= host.now)
            .then_some((reached, host.now));
    };
    // A request that cannot be decoded is answered without a handler.
    let (began, ended) = match (began, ended) {
        (0, 0) => (taken, taken),
        both => both,
    };
    let ordered = host.begun <= taken && taken <= began && began <= ended && ended <= answered;
    (ordered && answered <= host.now).then_some((began, ended))
}

/// What the worker says it has counted. Its collector cannot have paused it for longer than `most_ns`, the time since it took the request.
pub(super) fn believed(counters: Counters, most_ns: u64) -> InvocationCounters {
    let Counters {
        minor_faults,
        major_faults,
        stops,
    } = counters;
    InvocationCounters {
        minor_faults,
        major_faults,
        preemptions: stops.map(|stops| stops.preemptions),
        pauses: stops.map(|stops| stops.pauses),
        paused_us: stops.map(|stops| stops.paused_ns.min(most_ns) / 1_000),
    }
}

/// The three stages; `handler` is what [`checked`] made of the stamps.
pub(super) fn spans(handler: Option<(u64, u64)>, host: HostInstants) -> Spans {
    let (began, ended) = handler.unwrap_or_else(|| {
        let sent = host.sent.unwrap_or(host.now);
        (sent, host.answered.unwrap_or(host.now))
    });
    let between = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from));
    Spans {
        send: between(host.begun, began),
        run: between(began, ended),
        recv: between(ended, host.now),
    }
}

#[cfg(test)]
mod tests {
    use hearth_abi::Stops;
    use proptest::prelude::*;

    use super::*;

    const HOST: HostInstants = HostInstants {
        begun: 1_000,
        sent: Some(1_200),
        answered: Some(9_000),
        now: 9_500,
    };
    const GOOD: Stamps = Stamps {
        taken: 1_100,
        began: 1_300,
        ended: 8_000,
    };

    fn nanos(spans: Spans) -> [u128; 3] {
        [spans.send, spans.run, spans.recv].map(|span| span.as_nanos())
    }

    /// The stages of an exchange with these stamps, and whether they were believed.
    fn judged(stamps: Stamps, host: HostInstants) -> (bool, [u128; 3]) {
        let handler = checked(stamps, host);
        (handler.is_some(), nanos(spans(handler, host)))
    }

    #[test]
    fn the_handlers_time_is_what_the_worker_stamped() {
        assert_eq!(judged(GOOD, HOST), (true, [300, 6_700, 1_500]));
        // The worker was at it, and done, before the host looked at its clock again after the bell.
        let late = HostInstants {
            sent: Some(8_900),
            ..HOST
        };
        assert_eq!(judged(GOOD, late), (true, [300, 6_700, 1_500]));
    }

    #[test]
    fn stamps_out_of_order_leave_the_hosts_own_instants() {
        let own = [200, 7_800, 500];
        for (stamps, why) in [
            (Stamps { taken: 999, ..GOOD }, "taken before it was written"),
            (
                Stamps {
                    taken: 1_301,
                    ..GOOD
                },
                "taken after it began",
            ),
            (
                Stamps {
                    began: 8_001,
                    ..GOOD
                },
                "began after it ended",
            ),
            (
                Stamps {
                    ended: 9_001,
                    ..GOOD
                },
                "ended after it was answered",
            ),
            (Stamps { ended: 0, ..GOOD }, "answered without an end"),
            (Stamps { began: 0, ..GOOD }, "ended without a beginning"),
            (
                Stamps {
                    ended: u64::MAX,
                    ..GOOD
                },
                "the far future",
            ),
            (
                Stamps {
                    taken: 1,
                    began: 2,
                    ended: 3,
                },
                "another request's",
            ),
            (Stamps::default(), "nothing"),
        ] {
            assert_eq!(judged(stamps, HOST), (false, own), "{why}");
        }
    }

    #[test]
    fn a_request_that_no_handler_saw_has_no_run() {
        let undecodable = Stamps {
            taken: 1_100,
            ..Stamps::default()
        };
        assert_eq!(judged(undecodable, HOST), (true, [100, 0, 8_400]));
    }

    #[test]
    fn without_an_answer_the_rest_is_the_stage_that_was_reached() {
        let cut = HostInstants {
            answered: None,
            ..HOST
        };
        let began = Stamps { ended: 0, ..GOOD };
        assert_eq!(judged(began, cut), (true, [300, 8_200, 0]));
        let taken = Stamps { began: 0, ..began };
        assert_eq!(judged(taken, cut), (true, [100, 8_400, 0]));
        let before = Stamps {
            taken: 10,
            began: 20,
            ended: 30,
        };
        assert_eq!(judged(before, cut), (false, [200, 8_300, 0]));
        let unsent = HostInstants { sent: None, ..cut };
        assert_eq!(judged(before, unsent), (false, [8_500, 0, 0]));
    }

    fn any_instant() -> impl Strategy<Value = u64> {
        prop_oneof![0_u64..20, any::<u64>(), Just(0), Just(u64::MAX)]
    }

    #[test]
    fn a_collector_pauses_no_longer_than_the_handler_runs() {
        let claimed = Counters {
            minor_faults: 1,
            major_faults: 2,
            stops: Some(Stops {
                preemptions: 3,
                pauses: 4,
                paused_ns: u64::MAX,
            }),
        };
        let counters = believed(claimed, 7_999);
        assert_eq!((counters.pauses, counters.paused_us), (Some(4), Some(7)));
        assert_eq!((counters.minor_faults, counters.major_faults), (1, 2));
        let of_a_program = Counters {
            stops: None,
            ..claimed
        };
        assert_eq!(believed(of_a_program, 7_999).paused_us, None);
    }

    proptest! {
        #[test]
        fn whatever_a_worker_stamps_the_stages_add_up_to_the_hosts_own_time(
            (taken, began, ended) in (any_instant(), any_instant(), any_instant()),
            host in prop::collection::vec(any_instant(), 4),
            (sent, answered) in (any::<bool>(), any::<bool>()),
        ) {
            let mut host = host;
            host.sort_unstable();
            let host = HostInstants {
                begun: host[0],
                sent: (sent || answered).then_some(host[1]),
                answered: answered.then_some(host[2]),
                now: host[3],
            };
            let stamps = Stamps { taken, began, ended };
            let handler = checked(stamps, host);
            let whole = u128::from(host.now - host.begun);
            prop_assert_eq!(nanos(spans(handler, host)).iter().sum::<u128>(), whole);
            if let Some((from, to)) = handler {
                prop_assert!(host.begun <= from && from <= to && to <= host.now);
            }
        }
    }
}
