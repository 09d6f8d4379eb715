//! Units and properties of the pool.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::super::policy::controllers::Controllers;
use super::*;

impl Due {
    fn all(self) -> u32 {
        self.for_requests + self.for_minimum
    }
}

/// A run time that pays for a start for every request.
const LONG: Duration = Duration::from_secs(1);
/// One that does not.
const SHORT: Duration = Duration::from_micros(50);

fn limits(max: u32, min: u32, queue: u32) -> Limits {
    Limits {
        max,
        min,
        queue,
        idle_timeout: Duration::from_secs(10),
        processors: 2,
        controllers: Controllers::default(),
    }
}

/// The estimates for a function that runs this long.
fn learned(run: Duration, now: Instant) -> Option<Learned> {
    let mut pool: Pool<u32, ()> = Pool::new(limits(1, 1, 0), now, None);
    pool.starts_due(now);
    pool.started(0, now);
    pool.acquire(now);
    pool.release(0, now, run);
    Some(pool.learned())
}

fn long(now: Instant) -> Option<Learned> {
    learned(LONG, now)
}

#[test]
fn the_first_request_starts_an_instance_and_gets_it() {
    let now = Instant::now();
    let mut pool: Pool<u32, &str> = Pool::new(limits(2, 0, 4), now, None);
    assert_eq!(pool.acquire(now), Acquired::Wait);
    pool.enqueue("a").unwrap();
    assert_eq!(pool.starts_due(now).all(), 1);
    assert_eq!(pool.starts_due(now).all(), 0, "one request needs one start");
    assert_eq!(pool.started(1, now), Some(("a", 1)));
    assert_eq!(
        pool.counts(),
        Counts {
            idle: 0,
            busy: 1,
            starting: 0,
            queued: 0
        }
    );
    assert_eq!(pool.release(1, now, LONG), None);
    assert_eq!(pool.acquire(now), Acquired::Leased(1));
}

#[test]
fn a_full_house_queues_then_refuses() {
    let now = Instant::now();
    let mut pool: Pool<u32, u32> = Pool::new(limits(1, 0, 2), now, None);
    pool.enqueue(0).unwrap();
    assert_eq!(pool.starts_due(now).all(), 1);
    assert_eq!(pool.started(7, now), Some((0, 7)));
    pool.enqueue(1).unwrap();
    pool.enqueue(2).unwrap();
    assert_eq!(pool.enqueue(3), Err(Full(3)));
    assert_eq!(pool.starts_due(now).all(), 0, "the limit holds");
    assert_eq!(
        pool.release(7, now, LONG),
        Some((1, 7)),
        "first come, first served"
    );
    assert_eq!(pool.release(7, now, LONG), Some((2, 7)));
    assert_eq!(pool.release(7, now, LONG), None);
}

#[test]
fn a_released_instance_serves_before_the_started_one() {
    let now = Instant::now();
    let mut pool: Pool<u32, &str> = Pool::new(limits(2, 0, 4), now, long(now));
    pool.enqueue("a").unwrap();
    pool.starts_due(now);
    pool.started(1, now);
    pool.enqueue("b").unwrap();
    assert_eq!(pool.starts_due(now).all(), 1);
    assert_eq!(pool.release(1, now, LONG), Some(("b", 1)));
    assert_eq!(pool.started(2, now), None, "nobody waits any more");
    assert_eq!(pool.counts().idle, 1);
}

#[test]
fn the_minimum_is_started_and_kept() {
    let now = Instant::now();
    let mut pool: Pool<u32, ()> = Pool::new(limits(4, 2, 4), now, None);
    assert_eq!(pool.starts_due(now).all(), 2);
    pool.started(1, now);
    pool.started(2, now);
    assert!(
        pool.expired(now + Duration::from_secs(60), Duration::ZERO)
            .is_empty()
    );
    assert_eq!(pool.remove_idle(|&i| i == 1), [1]);
    assert_eq!(pool.starts_due(now).all(), 1, "a lost one is replaced");
}

#[test]
fn idle_instances_expire_oldest_first() {
    let now = Instant::now();
    let mut pool: Pool<u32, ()> = Pool::new(limits(3, 1, 4), now, long(now));
    for _ in 0..3 {
        pool.enqueue(()).unwrap();
    }
    assert_eq!(pool.starts_due(now).all(), 3);
    for instance in 1..=3 {
        assert!(pool.started(instance, now).is_some());
    }
    for (instance, age) in [(1, 0), (2, 5), (3, 20)] {
        assert_eq!(
            pool.release(instance, now + Duration::from_secs(age), LONG),
            None
        );
    }
    assert!(
        pool.expired(now + Duration::from_secs(9), Duration::ZERO)
            .is_empty()
    );
    let (timeout, grace) = (Duration::from_secs(10), Duration::from_secs(2));
    assert!(
        pool.expired(now + timeout, grace).is_empty(),
        "kept for longer than it has to be"
    );
    assert_eq!(pool.expired(now + timeout + grace, grace), [1]);
    assert_eq!(
        pool.expired(now + Duration::from_secs(60), Duration::ZERO),
        [2],
        "the minimum of one stays"
    );
    assert_eq!(pool.acquire(now), Acquired::Leased(3));
}

#[test]
fn a_failed_start_tells_those_whom_nobody_will_serve() {
    let now = Instant::now();
    let mut pool: Pool<u32, &str> = Pool::new(limits(2, 0, 4), now, long(now));
    pool.enqueue("a").unwrap();
    pool.starts_due(now);
    assert_eq!(pool.start_failed(now), ["a"]);
    pool.enqueue("b").unwrap();
    pool.starts_due(now);
    pool.started(1, now);
    pool.enqueue("c").unwrap();
    pool.starts_due(now);
    assert!(
        pool.start_failed(now).is_empty(),
        "the busy instance will serve it"
    );
    assert_eq!(pool.release(1, now, LONG), Some(("c", 1)));
}

/// A pool whose function is known to run for `run`, with `busy` busy instances.
fn known(limits: Limits, run: Duration, busy: u32, now: Instant) -> Pool<u32, u32> {
    let mut pool = Pool::new(limits, now, learned(run, now));
    for instance in 0..busy {
        pool.enqueue(instance).unwrap();
    }
    while pool.counts().busy < busy {
        pool.starting += 1;
        pool.started(pool.counts().busy, now);
    }
    pool
}

#[test]
fn a_short_call_waits_for_a_busy_instance_and_a_long_one_does_not() {
    let now = Instant::now();
    let mut pool = known(limits(8, 0, 4), LONG, 1, now);
    pool.enqueue(1).unwrap();
    assert_eq!(pool.starts_due(now).for_requests, 1);
    let mut pool = known(limits(8, 0, 4), SHORT, 1, now);
    pool.enqueue(1).unwrap();
    assert_eq!(pool.starts_due(now).for_requests, 0);
    assert!(pool.queues_behind_busy());
    // Until waiting turns out to be wrong.
    let at = pool.alarm(now).expect("it is looked at again");
    assert_eq!(pool.alarm(now), None, "once");
    pool.look_again(at);
    assert_eq!(pool.starts_due(at).for_requests, 1);
    assert_eq!(pool.alarm(at), None, "everybody has a start");
}

#[test]
fn progress_refutes_what_was_seen() {
    let now = Instant::now();
    let mut pool = known(limits(8, 0, 9), SHORT, 2, now);
    pool.enqueue(1).unwrap();
    pool.enqueue(2).unwrap();
    pool.enqueue(3).unwrap();
    let at = pool.alarm(now).unwrap();
    assert_eq!(pool.release(7, now + SHORT, SHORT), Some((1, 7)));
    pool.look_again(at);
    assert_eq!(pool.starts_due(at).for_requests, 0, "something has ended");
    let at = pool.alarm(at).expect("it is looked at again");
    pool.look_again(at);
    assert_eq!(pool.starts_due(at).for_requests, 1, "both are long");
    assert_eq!(pool.release(7, at + SHORT, SHORT), Some((2, 7)));
    assert!(!pool.confirm_start(at + SHORT), "no longer of use");
    assert_eq!(pool.counts().starting, 0);
}

#[test]
fn a_failed_start_is_repeated_after_a_pause_while_somebody_else_may_serve() {
    let now = Instant::now();
    let mut pool = known(limits(8, 0, 4), LONG, 1, now);
    pool.enqueue(1).unwrap();
    assert_eq!(pool.starts_due(now).for_requests, 1);
    assert!(pool.start_failed(now).is_empty());
    assert_eq!(pool.starts_due(now).for_requests, 0);
    let at = pool.alarm(now).expect("it is tried again");
    assert!(at > now + Duration::from_millis(100));
    pool.look_again(at);
    assert_eq!(pool.starts_due(at).for_requests, 1);
}

#[test]
fn a_minimum_that_does_not_start_is_tried_ever_more_rarely() {
    let mut now = Instant::now();
    let mut pool: Pool<u32, u32> = Pool::new(limits(2, 1, 4), now, None);
    let mut starts = 0;
    for _ in 0..600 {
        starts += 1;
        if pool.starts_due(now).for_minimum > 0 {
            pool.start_failed(now);
        } else {
            starts -= 1;
        }
        now += Duration::from_millis(500);
    }
    assert!((5..20).contains(&starts), "{starts} in five minutes");
}

#[test]
fn an_instance_is_ready_for_a_periodic_caller_and_goes_when_nobody_comes() {
    let mut now = Instant::now();
    let mut pool: Pool<u32, u32> = Pool::new(limits(2, 0, 4), now, None);
    let (minute, lead) = (Duration::from_secs(60), Duration::from_secs(1));
    for _ in 0..4 {
        assert!(!pool.arrive(now));
        now += minute;
    }
    let ahead = pool.tick(now - lead, lead, Duration::ZERO).ahead;
    assert_eq!(ahead, Some(true));
    assert_eq!(pool.starts_due(now).all(), 0, "counted as begun");
    assert!(pool.confirm_start(now), "it is of use");
    assert_eq!(pool.started(1, now - lead), None);
    assert!(pool.arrive(now), "it was ready for this call");
    assert_eq!(pool.acquire(now), Acquired::Leased(1));
    pool.release(1, now, SHORT);
    now += minute;
    assert_eq!(
        pool.tick(now - minute / 2, lead, Duration::ZERO).expired,
        [1]
    );
    assert_eq!(
        pool.tick(now - lead, lead, Duration::ZERO).ahead,
        Some(true)
    );
    assert_eq!(pool.started(2, now), None);
    let missed = pool.tick(now + minute / 2, lead, Duration::ZERO).missed;
    assert_eq!(missed, Some(vec![2]));
}

#[test]
fn the_minimum_is_not_evicted() {
    let now = Instant::now();
    let mut pool: Pool<u32, ()> = Pool::new(limits(4, 1, 4), now, long(now));
    for _ in 0..3 {
        pool.enqueue(()).unwrap();
    }
    pool.starts_due(now);
    for instance in 0..3 {
        pool.started(instance, now);
    }
    assert_eq!(pool.evictable(), 0, "all are busy");
    for instance in 0..3 {
        pool.release(instance, now, SHORT);
    }
    assert_eq!(pool.evictable(), 2);
    assert_eq!(pool.evict(9), [0, 1]);
}

#[derive(Debug, Clone)]
enum Step {
    Request,
    StartOk,
    StartDead,
    StartFails,
    Release(u64),
    Discard,
    GiveUp,
    Evict,
    Confirm,
    LookAgain,
    IdleDies,
    Expire,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(
        prop_oneof![
            4 => Just(Step::Request),
            3 => Just(Step::StartOk),
            1 => Just(Step::StartDead),
            1 => Just(Step::StartFails),
            2 => Just(Step::Release(50)),
            2 => Just(Step::Release(5_000_000)),
            1 => Just(Step::Discard),
            1 => Just(Step::GiveUp),
            1 => Just(Step::Evict),
            1 => Just(Step::Confirm),
            2 => Just(Step::LookAgain),
            1 => Just(Step::IdleDies),
            1 => Just(Step::Expire),
        ],
        0..200,
    )
}

proptest! {
    /// Invariants: never more instances than allowed, no request waiting beside an idle instance or beside room for a
    /// start that is never looked at again, no waiting request that nothing will serve, and requests are served in
    /// order of arrival.
    #[test]
    fn nobody_is_forgotten(
        max in 1_u32..5,
        min in 0_u32..3,
        queue in 0_u32..5,
        steps in steps(),
    ) {
        let start = Instant::now();
        let limits = limits(max, min.min(max), queue);
        let mut pool: Pool<u32, u32> = Pool::new(limits, start, None);
        let (mut clock, mut instances, mut requests) = (start, 0, 0);
        let mut busy = Vec::new();
        let (mut last_served, mut alarm) = (None, None);
        let mut serve = |given: Option<(u32, u32)>, busy: &mut Vec<u32>| {
            if let Some((request, instance)) = given {
                assert!(last_served < Some(request), "{request} after {last_served:?}");
                last_served = Some(request);
                busy.push(instance);
            }
        };
        for step in steps {
            clock += Duration::from_secs(3);
            let starting = pool.counts().starting;
            match step {
                Step::Request => {
                    pool.arrive(clock);
                    match pool.acquire(clock) {
                    Acquired::Leased(instance) => {
                        serve(Some((requests, instance)), &mut busy);
                        requests += 1;
                    }
                    Acquired::Wait => {
                        if pool.enqueue(requests).is_ok() {
                            requests += 1;
                        }
                    }
                }
                }
                Step::StartOk if starting > 0 => {
                    instances += 1;
                    let given = pool.started(instances, clock);
                    serve(given, &mut busy);
                }
                // The instance is dead when its request looks at it.
                Step::StartDead if starting > 0 => {
                    instances += 1;
                    if let Some((request, _)) = pool.started(instances, clock) {
                        pool.was_dead();
                        assert!(matches!(pool.acquire(clock), Acquired::Wait));
                        pool.enqueue_first(request);
                    }
                }
                Step::StartFails if starting > 0 => {
                    pool.start_failed(clock);
                }
                Step::Release(run) if !busy.is_empty() => {
                    let instance = busy.remove(0);
                    let given = pool.release(instance, clock, Duration::from_micros(run));
                    serve(given, &mut busy);
                }
                Step::Discard if !busy.is_empty() => {
                    busy.pop();
                    pool.discard(clock, Duration::from_millis(1));
                }
                Step::IdleDies => {
                    let mut one = true;
                    pool.remove_idle(|_| std::mem::take(&mut one));
                }
                Step::Expire => {
                    let tick = pool.tick(clock, Duration::from_secs(1), Duration::ZERO);
                    prop_assert!(tick.ahead != Some(true) || pool.counts().live() == 0);
                }
                Step::GiveUp => {
                    let mut one = true;
                    pool.retain_waiting(|_| !std::mem::take(&mut one));
                }
                Step::Evict => {
                    pool.evict(1);
                }
                Step::Confirm if starting > 0 => {
                    pool.confirm_start(clock);
                }
                Step::LookAgain => {
                    if let Some(at) = alarm.take() {
                        pool.look_again(at);
                    }
                }
                _ => {}
            }
            pool.starts_due(clock);
            alarm = pool.alarm(clock).or(alarm);
            let counts = pool.counts();
            prop_assert_eq!(counts.busy as usize, busy.len());
            prop_assert!(counts.idle + counts.busy + counts.starting <= max);
            prop_assert!(counts.idle == 0 || counts.queued == 0, "an idle instance beside a queue");
            prop_assert!(counts.queued == 0 || counts.busy + counts.starting > 0);
            let backing_off = pool.is_backing_off(clock);
            prop_assert!(backing_off || counts.live() + counts.starting >= min.min(max));
            // Either every waiting request has a start, or there is no room, or the queue will be looked at again.
            let served = counts.queued <= counts.starting || counts.live() + counts.starting == max;
            prop_assert!(served || alarm.is_some() || counts.busy == 0);
        }
    }
}
