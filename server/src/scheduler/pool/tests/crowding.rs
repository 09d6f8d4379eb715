//! Who waits for an instance at work although there is an idle one.

use super::*;

/// Two instances at work and two idle, of a function that runs that long; two are enough to keep the cores busy.
fn half_idle(run: Duration, now: Instant) -> Pool<u32, u32> {
    let limits = Limits {
        level: 2,
        ..limits(4, 4, 3)
    };
    let mut pool = Pool::new(limits, now, learned(run, now));
    assert_eq!(pool.starts_due(now).all(), 4);
    for instance in 1..=4 {
        assert_eq!(pool.started(instance, now), None);
    }
    for instance in [4, 3] {
        assert_eq!(pool.acquire(now), Acquired::Leased(instance));
    }
    pool
}

#[test]
fn a_short_call_waits_for_a_busy_instance_when_the_cores_are_busy() {
    let now = Instant::now();
    let mut pool = half_idle(SHORT, now);
    assert_eq!(pool.acquire(now), Acquired::Wait);
    pool.enqueue(0).unwrap();
    assert_eq!(pool.lend_idle(now), None);
    assert_eq!(pool.starts_due(now).all(), 0);
    assert!(pool.alarm(now).is_some(), "it is looked after");
    pool.enqueue(1).unwrap();
    assert_eq!(pool.release(4, now, SHORT), Some((0, 4)));
    assert!(!pool.may_help(), "the other one waits on");
    assert_eq!(pool.release(4, now, LONG), Some((1, 4)));
    pool.enqueue(2).unwrap();
    assert!(pool.may_help(), "its calls are long now");
    assert_eq!(pool.lend_idle(now), Some((2, 2)));
}

#[test]
fn a_short_call_gets_an_instance_at_once_when_a_core_is_free() {
    let now = Instant::now();
    let mut pool = half_idle(SHORT, now);
    assert_eq!(pool.release(4, now, SHORT), None);
    assert_eq!(pool.acquire(now), Acquired::Leased(4));
}

#[test]
fn a_long_call_gets_the_idle_instance() {
    let now = Instant::now();
    let mut pool = half_idle(LONG, now);
    assert_eq!(pool.acquire(now), Acquired::Leased(2));
    // Three at work, each half as fast as two: that says nothing of what two take.
    for (instance, took) in [(4, SHORT), (3, SHORT * 100)] {
        pool.release(instance, now, took);
        assert_eq!(pool.acquire(now), Acquired::Leased(instance));
    }
}

#[test]
fn idle_instances_are_used_when_those_at_work_are_lost_or_stuck() {
    let now = Instant::now();
    let mut lost = half_idle(SHORT, now);
    lost.enqueue(0).unwrap();
    lost.discard(now, SHORT);
    assert_eq!(lost.acquire(now), Acquired::Wait, "nobody is overtaken");
    assert_eq!(lost.lend_idle(now), Some((0, 2)));
    assert_eq!(lost.lend_idle(now), None);

    let mut stuck = half_idle(SHORT, now);
    stuck.enqueue(0).unwrap();
    stuck.enqueue(1).unwrap();
    let at = stuck.alarm(now).unwrap();
    assert_eq!(stuck.alarm(now), None, "it is set");
    stuck.look_again(at);
    assert_eq!(stuck.lend_idle(at), Some((0, 2)));
    assert_eq!(stuck.lend_idle(at), Some((1, 1)));
    assert_eq!(stuck.lend_idle(at), None);
}

#[test]
fn a_long_queue_is_given_idle_instances() {
    let now = Instant::now();
    let mut pool = half_idle(SHORT, now);
    for request in 0..3 {
        assert_eq!(pool.acquire(now), Acquired::Wait);
        pool.enqueue(request).unwrap();
    }
    assert_eq!(pool.lend_idle(now), Some((0, 2)));
    assert_eq!(pool.lend_idle(now), None, "the queue has room again");
}

#[test]
fn a_queue_that_lasts_is_given_instances_one_by_one_up_to_the_level() {
    let mut now = Instant::now();
    let limits = Limits {
        level: 3,
        ..limits(8, 0, 100)
    };
    let mut pool: Pool<u32, u32> = Pool::new(limits, now, learned(SHORT, now));
    assert_eq!(pool.acquire(now), Acquired::Wait);
    pool.enqueue(0).unwrap();
    assert_eq!(pool.starts_due(now).all(), 1);
    assert_eq!(pool.started(1, now), Some((0, 1)));
    let (mut instances, mut busy) = (1, vec![1]);
    for request in 1..1000 {
        assert_eq!(pool.acquire(now), Acquired::Wait);
        pool.enqueue(request).unwrap();
        assert_eq!(pool.starts_due(now).all(), 0, "an arrival shows nothing");
        now += SHORT;
        let instance = busy.remove(0);
        let (_, instance) = pool.release(instance, now, SHORT).unwrap();
        busy.push(instance);
        // One more waits than can be served at once, always.
        if request == 1 {
            pool.enqueue(request).unwrap();
        }
        let due = pool.starts_due(now);
        assert_eq!(due.all(), due.for_backlog);
        assert!(due.for_backlog <= 1);
        assert_eq!(pool.starts_due(now).all(), 0, "it is under way");
        if due.for_backlog == 1 {
            assert!(pool.confirm_start(now));
            instances += 1;
            let given = pool.started(instances, now);
            busy.extend(given.map(|(_, instance)| instance));
            pool.enqueue(request).unwrap();
        }
    }
    assert_eq!(instances, 3);
}
