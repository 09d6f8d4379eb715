//! A queue that lasts although its calls are short.

use super::*;

#[test]
fn a_queue_that_lasts_is_given_instances_one_by_one_until_the_cores_are_busy() {
    let mut now = Instant::now();
    let limits = Limits {
        backlog_limit: 3,
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
