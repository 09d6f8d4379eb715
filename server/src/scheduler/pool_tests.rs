//! Units and properties of the pool.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

fn limits(max: u32, min: u32, queue: u32) -> Limits {
    Limits {
        max,
        min,
        queue,
        idle_timeout: Duration::from_secs(10),
    }
}

#[test]
fn the_first_request_starts_an_instance_and_gets_it() {
    let now = Instant::now();
    let mut pool: Pool<u32, &str> = Pool::new(limits(2, 0, 4));
    assert_eq!(pool.acquire(), Acquired::Wait);
    pool.enqueue("a").unwrap();
    assert_eq!(pool.starts_due(), 1);
    assert_eq!(pool.starts_due(), 0, "one request needs one start");
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
    assert_eq!(pool.release(1, now), None);
    assert_eq!(pool.acquire(), Acquired::Leased(1));
}

#[test]
fn a_full_house_queues_then_refuses() {
    let now = Instant::now();
    let mut pool: Pool<u32, u32> = Pool::new(limits(1, 0, 2));
    pool.enqueue(0).unwrap();
    assert_eq!(pool.starts_due(), 1);
    assert_eq!(pool.started(7, now), Some((0, 7)));
    pool.enqueue(1).unwrap();
    pool.enqueue(2).unwrap();
    assert_eq!(pool.enqueue(3), Err(Full(3)));
    assert_eq!(pool.starts_due(), 0, "the limit holds");
    assert_eq!(
        pool.release(7, now),
        Some((1, 7)),
        "first come, first served"
    );
    assert_eq!(pool.release(7, now), Some((2, 7)));
    assert_eq!(pool.release(7, now), None);
}

#[test]
fn a_released_instance_serves_before_the_started_one() {
    let now = Instant::now();
    let mut pool: Pool<u32, &str> = Pool::new(limits(2, 0, 4));
    pool.enqueue("a").unwrap();
    pool.starts_due();
    pool.started(1, now);
    pool.enqueue("b").unwrap();
    assert_eq!(pool.starts_due(), 1);
    assert_eq!(pool.release(1, now), Some(("b", 1)));
    assert_eq!(pool.started(2, now), None, "nobody waits any more");
    assert_eq!(pool.counts().idle, 1);
}

#[test]
fn the_minimum_is_started_and_kept() {
    let now = Instant::now();
    let mut pool: Pool<u32, ()> = Pool::new(limits(4, 2, 4));
    assert_eq!(pool.starts_due(), 2);
    pool.started(1, now);
    pool.started(2, now);
    assert_eq!(pool.next_expiry(), None);
    assert!(pool.expired(now + Duration::from_secs(60)).is_empty());
    assert_eq!(pool.remove_idle(|&i| i == 1), [1]);
    assert_eq!(pool.starts_due(), 1, "a lost one is replaced");
}

#[test]
fn idle_instances_expire_oldest_first() {
    let now = Instant::now();
    let mut pool: Pool<u32, ()> = Pool::new(limits(3, 1, 4));
    for _ in 0..3 {
        pool.enqueue(()).unwrap();
    }
    assert_eq!(pool.starts_due(), 3);
    for instance in 1..=3 {
        assert!(pool.started(instance, now).is_some());
    }
    for (instance, age) in [(1, 0), (2, 5), (3, 20)] {
        assert_eq!(pool.release(instance, now + Duration::from_secs(age)), None);
    }
    assert_eq!(pool.next_expiry(), Some(now + Duration::from_secs(10)));
    assert!(pool.expired(now + Duration::from_secs(9)).is_empty());
    assert_eq!(pool.expired(now + Duration::from_secs(10)), [1]);
    assert_eq!(
        pool.expired(now + Duration::from_secs(60)),
        [2],
        "the minimum of one stays"
    );
    assert_eq!(pool.acquire(), Acquired::Leased(3));
}

#[test]
fn a_failed_start_tells_those_whom_nobody_will_serve() {
    let now = Instant::now();
    let mut pool: Pool<u32, &str> = Pool::new(limits(2, 0, 4));
    pool.enqueue("a").unwrap();
    pool.starts_due();
    assert_eq!(pool.start_failed(), ["a"]);
    pool.enqueue("b").unwrap();
    pool.starts_due();
    pool.started(1, now);
    pool.enqueue("c").unwrap();
    pool.starts_due();
    assert!(
        pool.start_failed().is_empty(),
        "the busy instance will serve it"
    );
    assert_eq!(pool.release(1, now), Some(("c", 1)));
}

#[derive(Debug, Clone)]
enum Step {
    Request,
    StartOk,
    StartFails,
    Release,
    Discard,
    IdleDies,
    Expire,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(
        prop_oneof![
            4 => Just(Step::Request),
            3 => Just(Step::StartOk),
            1 => Just(Step::StartFails),
            4 => Just(Step::Release),
            1 => Just(Step::Discard),
            1 => Just(Step::IdleDies),
            1 => Just(Step::Expire),
        ],
        0..200,
    )
}

proptest! {
    /// Whatever happens: never more instances than allowed, never an idle instance beside a waiting request, never a
    /// waiting request that nothing will serve, and requests are served in the order in which they came.
    #[test]
    fn nobody_is_forgotten(max in 1_u32..5, min in 0_u32..3, queue in 0_u32..5, steps in steps()) {
        let start = Instant::now();
        let mut pool: Pool<u32, u32> = Pool::new(limits(max, min.min(max), queue));
        let (mut clock, mut instances, mut requests) = (start, 0, 0);
        let mut busy = Vec::new();
        let mut last_served = None;
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
                Step::Request => match pool.acquire() {
                    Acquired::Leased(instance) => {
                        serve(Some((requests, instance)), &mut busy);
                        requests += 1;
                    }
                    Acquired::Wait => {
                        if pool.enqueue(requests).is_ok() {
                            requests += 1;
                        }
                    }
                },
                Step::StartOk if starting > 0 => {
                    instances += 1;
                    let given = pool.started(instances, clock);
                    serve(given, &mut busy);
                }
                Step::StartFails if starting > 0 => {
                    pool.start_failed();
                }
                Step::Release if !busy.is_empty() => {
                    let instance = busy.remove(0);
                    let given = pool.release(instance, clock);
                    serve(given, &mut busy);
                }
                Step::Discard if !busy.is_empty() => {
                    busy.pop();
                    pool.discard();
                }
                Step::IdleDies => {
                    let mut one = true;
                    pool.remove_idle(|_| std::mem::take(&mut one));
                }
                Step::Expire => {
                    pool.expired(clock);
                }
                _ => {}
            }
            pool.starts_due();
            let counts = pool.counts();
            prop_assert_eq!(counts.busy as usize, busy.len());
            prop_assert!(counts.idle + counts.busy + counts.starting <= max);
            prop_assert!(counts.idle == 0 || counts.queued == 0);
            prop_assert!(counts.queued == 0 || counts.busy + counts.starting > 0);
            prop_assert!(counts.idle + counts.busy + counts.starting >= min.min(max));
        }
    }
}
