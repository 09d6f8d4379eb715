//! Units, properties, and a simulation of bursts in simulated time.

use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn load(run: Option<Duration>, start: Duration) -> Load {
    let mut load = Load::default();
    load.start.sample(start);
    if let Some(run) = run {
        load.sample(run.into());
    }
    load
}

fn queue(waiting: u32, busy: u32) -> Queue {
    Queue {
        waiting,
        busy,
        processors: 2,
        seen: Duration::ZERO,
    }
}

#[test]
fn long_calls_get_an_instance_each_and_short_ones_a_few() {
    let long = load(Some(Duration::from_secs(1)), MS);
    assert_eq!(starts_wanted(&long, queue(100, 0)), 100);
    assert_eq!(starts_wanted(&long, queue(1, 8)), 1, "not behind busy ones");
    let short = load(Some(Duration::from_micros(50)), MS);
    assert_eq!(starts_wanted(&short, queue(100, 0)), 3);
    assert_eq!(starts_wanted(&short, queue(1, 0)), 1);
    assert_eq!(starts_wanted(&short, queue(1, 1)), 0, "behind the busy one");
    assert_eq!(starts_wanted(&short, queue(0, 0)), 0);
}

#[test]
fn a_start_costs_what_its_first_run_takes_longer() {
    let mut short = load(Some(MS / 4), MS / 4);
    let before = starts_wanted(&short, queue(100, 2));
    // A hundred times as long, because the page faults of a first run and those of all others compete for the processors.
    short.first.sample(MS * 25);
    assert_eq!(short.start_cost(), MS / 4 + FIRST_MOST);
    let after = starts_wanted(&short, queue(100, 2));
    assert!(after < before / 2, "{after} after {before}");
    // Long calls have an instance each all the same.
    let mut long = load(Some(Duration::from_secs(1)), MS);
    long.first.sample(Duration::from_secs(9));
    assert_eq!(starts_wanted(&long, queue(100, 0)), 100);
    // First runs are all that is known of some functions.
    let mut rare = load(None, MS);
    rare.first.sample(Duration::from_secs(1));
    assert_eq!(rare.start_cost(), MS);
    assert_eq!(starts_wanted(&rare, queue(100, 0)), 100);
}

#[test]
fn handing_over_is_shared_by_as_many_instances_as_processors() {
    let mut load = load(None, MS);
    // Where many instances wait for one another's processors.
    load.sample(Held {
        lease: MS * 2,
        run: MS / 20,
    });
    assert_eq!(starts_wanted(&load, queue(100, 0)), 3);
    assert_eq!(starts_wanted(&load, queue(100, 1)), 2);
    assert_eq!(starts_wanted(&load, queue(10, 2)), 0);
    let many = Queue {
        processors: 64,
        ..queue(100, 0)
    };
    assert_eq!(starts_wanted(&load, many), 20);
}

#[test]
fn a_call_that_somebody_is_waited_for_in_has_an_instance_of_its_own() {
    let mut load = load(None, MS);
    // The handler returns at once, and a client reads what it streams.
    load.sample(Held {
        lease: Duration::from_secs(10),
        run: MS / 20,
    });
    assert_eq!(starts_wanted(&load, queue(100, 0)), 100);
    assert_eq!(starts_wanted(&load, queue(1, 500)), 1);
}

#[test]
fn a_pause_that_is_usual_wants_no_more() {
    let mut load = load(Some(MS / 20), MS);
    load.first.sample(MS);
    let mut queue = queue(100, 2);
    queue.seen = MS;
    assert_eq!(starts_wanted(&load, queue), 1, "as if nothing were seen");
    queue.seen = MS * 2;
    assert!(starts_wanted(&load, queue) > 6);
    // One that imports at its first call says nothing of those that follow it.
    load.first.sample(Duration::from_secs(60));
    queue.seen = MS * 3;
    assert!(starts_wanted(&load, queue) > 4);
}

#[test]
fn an_unknown_function_is_started_some_times_at_once() {
    let unknown = load(None, MS);
    assert_eq!(starts_wanted(&unknown, queue(1, 0)), 1);
    let wanted = starts_wanted(&unknown, queue(100, 0));
    assert_eq!(wanted, 14);
}

#[test]
fn the_wait_ends_where_one_start_more_pays() {
    let short = load(Some(Duration::from_micros(50)), MS);
    let mut waiting = queue(1, 1);
    let wait = pays_after(&short, waiting, 0).unwrap();
    assert!(wait >= MS && wait < 2 * MS, "{wait:?}");
    waiting.seen = wait;
    assert_eq!(starts_wanted(&short, waiting), 1);
    assert_eq!(pays_after(&short, queue(3, 1), 3), None);
}

proptest! {
    /// Never more than one start for a request; somebody serves whoever waits; more work, fewer servers or longer runs
    /// never want fewer starts; and the closed form is what the module's inequality says.
    #[test]
    fn the_number_is_the_greatest_that_pays(
        waiting in 0_u32..2000, busy in 0_u32..1000, run in 1_u64..10_000_000_000, start in 1_u64..1_000_000_000,
    ) {
        let load = load(Some(Duration::from_nanos(run)), Duration::from_nanos(start));
        let wanted = starts_wanted(&load, queue(waiting, busy));
        prop_assert!(wanted <= waiting);
        prop_assert!(waiting == 0 || wanted + busy > 0);
        let cost = load.start_cost().as_secs_f64();
        let work = f64::from(waiting) * Duration::from_nanos(run).as_secs_f64();
        let pays = |m: u32| work > done_before(f64::from(m), busy, cost);
        prop_assert!(wanted == 0 || pays(wanted) || (busy == 0 && wanted == 1));
        prop_assert!(wanted == waiting || !pays(wanted + 1));
        prop_assert!(starts_wanted(&load, queue(waiting + 1, busy)) >= wanted);
        prop_assert!(starts_wanted(&load, queue(waiting, busy + 1)) <= wanted);
    }

    /// Whatever was believed, waiting out the pays_after wants one start more.
    #[test]
    fn the_wait_is_never_in_vain(
        waiting in 1_u32..2000, busy in 1_u32..1000, starting in 0_u32..2000,
        run in 1_u64..10_000_000_000, start in 1_u64..1_000_000_000,
    ) {
        let load = load(Some(Duration::from_nanos(run)), Duration::from_nanos(start));
        let mut queue = queue(waiting, busy);
        match pays_after(&load, queue, starting) {
            None => prop_assert!(starting >= waiting),
            Some(wait) => {
                queue.seen = wait;
                prop_assert!(starts_wanted(&load, queue) > starting);
            }
        }
    }
}

/// What ends in a simulated burst.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Start,
    Run,
    PaysAfter,
}

/// Serves `calls` calls that come at once, each of `run`, and returns the starts made and when the last call was taken
/// up. Starts come off the template one after the other, `start` apart.
fn simulate(mut load: Load, calls: u32, run: Duration, start: Duration) -> (u32, Duration) {
    let mut events = BinaryHeap::new();
    let mut now = Duration::ZERO;
    let (mut waiting, mut busy, mut starting, mut idle) = (calls, 0_u32, 0_u32, 0_u32);
    let (mut started, mut template_free, mut taken_up) = (0, Duration::ZERO, Duration::ZERO);
    let (mut progress, mut seen) = (Duration::ZERO, Duration::ZERO);
    loop {
        let queue = Queue {
            waiting,
            busy,
            processors: 2,
            seen,
        };
        let due = starts_wanted(&load, queue).saturating_sub(starting);
        for _ in 0..due {
            template_free = template_free.max(now) + start;
            events.push(std::cmp::Reverse((template_free, Event::Start)));
        }
        starting += due;
        started += due;
        if busy > 0
            && let Some(wait) = pays_after(&load, queue, starting)
        {
            let at = (progress + wait).max(now + Duration::from_nanos(1));
            events.push(std::cmp::Reverse((at, Event::PaysAfter)));
        }
        let Some(std::cmp::Reverse((at, event))) = events.pop() else {
            assert_eq!(waiting, 0, "somebody is never served");
            return (started, taken_up);
        };
        now = at;
        match event {
            Event::Start => starting -= 1,
            Event::Run => {
                busy -= 1;
                load.sample(run.into());
                (progress, seen) = (now, Duration::ZERO);
            }
            Event::PaysAfter => {
                if busy > 0 {
                    seen = now - progress;
                }
                continue;
            }
        }
        if waiting > 0 {
            if busy == 0 {
                (progress, seen) = (now, Duration::ZERO);
            }
            (waiting, busy, taken_up) = (waiting - 1, busy + 1, now);
            events.push(std::cmp::Reverse((now + run, Event::Run)));
        } else {
            idle += 1;
        }
        assert!(idle <= started);
    }
}

#[test]
fn a_burst_of_short_calls_takes_few_starts() {
    let run = Duration::from_micros(50);
    for known in [Some(run), None] {
        let (started, taken_up) = simulate(load(known, MS), 100, run, MS);
        assert!(started <= 20, "{started} starts, known: {known:?}");
        assert!(taken_up < 10 * MS, "{taken_up:?}");
    }
}

#[test]
fn long_calls_after_a_history_of_short_ones_all_get_an_instance_soon() {
    let short = Duration::from_micros(50);
    for known in [Some(short), None] {
        let (started, taken_up) = simulate(load(known, MS), 100, Duration::from_secs(1), MS);
        assert_eq!(started, 100);
        assert!(taken_up < 200 * MS, "{taken_up:?}, known: {known:?}");
    }
}

#[test]
fn nobody_waits_for_long_calls_in_step() {
    // A start is counted with more than the template takes for it.
    let short = load(Some(MS / 20), 3 * MS);
    let (started, taken_up) = simulate(short, 500, Duration::from_secs(1), MS);
    assert_eq!(started, 500);
    assert!(taken_up < 600 * MS, "{taken_up:?}");
}

#[test]
fn what_was_waited_out_starts_one_more() {
    let long = load(Some(Duration::from_secs(1)), MS);
    let mut queue = queue(2, 1_000);
    // A pause of 2 ms is usual, two ends are 1 ms apart where the calls are not in step, and a start takes 1 ms.
    let wait = pays_after(&long, queue, 0).unwrap();
    assert!(wait > 4 * MS && wait < 5 * MS, "{wait:?}");
    queue.seen = 4 * MS;
    assert_eq!(starts_wanted(&long, queue), 1, "as of the fluid");
    queue.seen = 6 * MS;
    assert_eq!(starts_wanted(&long, queue), 2);
}

proptest! {
    /// Everybody is served, and soon: no later than a small multiple of what starting an instance for each would have
    /// taken, or of what the starts that were made took, whatever was believed of the run time.
    #[test]
    fn a_wrong_guess_costs_little(
        calls in 1_u32..200, believed in 1_u64..2_000_000, run in 1_u64..2_000_000, start in 200_u64..5_000,
    ) {
        let micros = Duration::from_micros;
        let load = load(Some(micros(believed)), micros(start));
        let (started, taken_up) = simulate(load, calls, micros(run), micros(start));
        prop_assert!(started >= 1);
        let each = micros(start) * (calls + 1);
        prop_assert!(taken_up <= each * 3, "{taken_up:?} against {each:?}, {started} starts");
    }
}
