//! Which cause comes first, and what is said of it.

use jiff::Timestamp;

use super::*;
use crate::model::{InvocationCounters, InvocationId, Status, Trigger};

const MEDIAN: Stages = Stages {
    queue: 0,
    start: 0,
    send: 20,
    run: 900,
    recv: 30,
    total: 1_000,
};

/// An invocation that took 11 ms, ten of them too many.
fn record(counters: InvocationCounters) -> InvocationRecord {
    InvocationRecord {
        id: InvocationId::new(),
        function: "f".into(),
        version: 1,
        trigger: Trigger::Invoke,
        status: Status::Succeeded,
        start: Some(StartKind::Warm),
        received_at: Timestamp::UNIX_EPOCH,
        finished_at: None,
        stages_us: Stages {
            run: 10_900,
            total: 11_000,
            ..MEDIAN
        },
        counters: Some(counters),
        request_bytes: 0,
        response_bytes: 0,
        attempts: 1,
        error: None,
        chain: None,
        logs: Vec::new(),
    }
}

fn window() -> TailWindow {
    TailWindow {
        from: Timestamp::UNIX_EPOCH,
        to: Timestamp::UNIX_EPOCH,
        busy: 0.1,
        steal: 0.0,
        cpu_pressure: Some(0.0),
        memory_pressure: None,
        io_pressure: Some(0.0),
        throttled_periods: 0,
        throttled_us: 0,
    }
}

fn explained(record: &InvocationRecord, window: Option<&TailWindow>) -> (Vec<CauseKind>, String) {
    let facts = Facts {
        record,
        median: Some(&MEDIAN),
        window,
        usual: None,
    };
    let causes = facts.causes();
    let summary = facts.summary(&causes);
    (causes.iter().map(|cause| cause.kind).collect(), summary)
}

#[test]
fn the_collector_is_named_when_it_took_most_of_the_excess() {
    let counters = InvocationCounters {
        pauses: Some(2),
        paused_us: Some(8_000),
        minor_faults: 4_000,
        ..InvocationCounters::default()
    };
    let (kinds, summary) = explained(&record(counters), Some(&window()));
    assert_eq!(kinds, [CauseKind::Collector, CauseKind::PageFaults]);
    assert_eq!(
        summary,
        "Most likely the garbage collector: 2 collections of garbage took 8.00 ms. That is 80% of the 10.0 ms above the median of \
         1.00 ms, measured in this invocation."
    );
}

#[test]
fn throttling_explains_no_more_than_the_excess() {
    let window = TailWindow {
        throttled_periods: 9,
        throttled_us: 90_000,
        cpu_pressure: Some(0.3),
        ..window()
    };
    let record = record(InvocationCounters::default());
    let facts = Facts {
        record: &record,
        median: Some(&MEDIAN),
        window: Some(&window),
        usual: None,
    };
    let causes = facts.causes();
    assert_eq!(causes[0].kind, CauseKind::Throttling);
    assert_eq!((causes[0].us, causes[0].share), (Some(10_000), Some(1.0)));
    assert!(!causes[0].is_own);
    assert_eq!(
        (causes[1].kind, causes[1].us),
        (CauseKind::CpuPressure, Some(3_300))
    );
    let summary = facts.summary(&causes);
    assert!(
        summary.starts_with("Most likely CPU throttling") && summary.contains("at most"),
        "{summary}"
    );
}

#[test]
fn a_start_explains_a_cold_call_and_a_queue_one_that_waited() {
    let mut cold = record(InvocationCounters::default());
    cold.start = Some(StartKind::Boot);
    cold.stages_us.run = 900;
    cold.stages_us.start = 9_900;
    let (kinds, summary) = explained(&cold, Some(&window()));
    assert_eq!(kinds, [CauseKind::Start]);
    assert!(
        summary.contains("a boot of the runtime took 9.90 ms"),
        "{summary}"
    );

    let mut queued = record(InvocationCounters::default());
    queued.stages_us.run = 900;
    queued.stages_us.queue = 10_000;
    let (kinds, summary) = explained(&queued, None);
    assert_eq!(kinds, [CauseKind::Queue]);
    assert!(summary.starts_with("Most likely the queue"), "{summary}");
}

#[test]
fn a_lost_processor_is_probable_only_on_a_crowded_host() {
    let counters = InvocationCounters {
        preemptions: Some(3),
        ..InvocationCounters::default()
    };
    let crowded = TailWindow {
        cpu_pressure: Some(0.4),
        ..window()
    };
    let record = record(counters);
    let (kinds, summary) = explained(&record, Some(&crowded));
    assert_eq!(kinds, [CauseKind::CpuPressure, CauseKind::Preemption]);
    assert!(
        summary.starts_with("Probably a lost processor"),
        "{summary}"
    );
    let (_, summary) = explained(&record, Some(&window()));
    assert!(summary.starts_with("No counter explains it"), "{summary}");
}

#[test]
fn that_nothing_explains_it_is_an_answer() {
    let record = record(InvocationCounters::default());
    let (kinds, summary) = explained(&record, Some(&window()));
    assert!(kinds.is_empty());
    assert_eq!(
        summary,
        "No counter explains it. It took 10.0 ms above the median of 1.00 ms. Most of it went into the handler itself: 10.9 ms instead \
         of 900 µs."
    );
    let (_, summary) = explained(&record, None);
    assert!(summary.ends_with("do not reach back to it."), "{summary}");
    // A part is said to be one.
    let part = TailWindow {
        io_pressure: Some(0.3),
        ..window()
    };
    let (_, summary) = explained(&record, Some(&part));
    assert!(
        summary.starts_with("Only a part is explained, by a busy disk"),
        "{summary}"
    );
}

#[test]
fn what_was_not_slow_or_has_no_median_is_not_explained() {
    let mut quick = record(InvocationCounters::default());
    quick.stages_us.total = 900;
    let (_, summary) = explained(&quick, Some(&window()));
    assert_eq!(summary, "It was not slow: the median is 1.00 ms.");
    let record = record(InvocationCounters::default());
    let facts = Facts {
        record: &record,
        median: None,
        window: None,
        usual: None,
    };
    let summary = facts.summary(&facts.causes());
    assert!(
        summary.starts_with("There is nothing to compare it with"),
        "{summary}"
    );
    assert_eq!(facts.excess_us(), 11_000);
}

#[test]
fn what_the_host_always_does_explains_no_exception() {
    let busy = TailWindow {
        cpu_pressure: Some(0.8),
        steal: 0.1,
        ..window()
    };
    let record = record(InvocationCounters::default());
    let explained = |usual: &TailWindow| {
        let facts = Facts {
            record: &record,
            median: Some(&MEDIAN),
            window: Some(&busy),
            usual: Some(usual),
        };
        let causes = facts.causes();
        (facts.summary(&causes), causes)
    };
    let (summary, causes) = explained(&busy);
    assert!(
        causes.is_empty() && summary.starts_with("No counter"),
        "{summary}"
    );
    let (summary, causes) = explained(&window());
    let kinds: Vec<_> = causes.iter().map(|cause| (cause.kind, cause.us)).collect();
    let expected = [
        (CauseKind::CpuPressure, Some(8_800)),
        (CauseKind::Steal, Some(1_100)),
    ];
    assert_eq!(kinds, expected);
    assert!(summary.starts_with("Most likely a busy host"), "{summary}");
}

#[test]
fn the_invocations_own_figures_come_before_the_hosts() {
    let busy = TailWindow {
        cpu_pressure: Some(0.95),
        throttled_periods: 3,
        throttled_us: 6_000,
        ..window()
    };
    let counters = InvocationCounters {
        pauses: Some(1),
        paused_us: Some(5_500),
        minor_faults: 200,
        ..InvocationCounters::default()
    };
    let (kinds, summary) = explained(&record(counters), Some(&busy));
    let expected = [
        CauseKind::Collector,
        CauseKind::Throttling,
        CauseKind::CpuPressure,
        CauseKind::PageFaults,
    ];
    assert_eq!(kinds, expected);
    assert!(
        summary.starts_with("Most likely the garbage collector"),
        "{summary}"
    );
}
