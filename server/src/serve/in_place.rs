//! A future that is polled again immediately when it wakes itself.
//!
//! hyper reads a request's body and runs its handler in one task, so a handler that asks for the body wakes the task it
//! runs in. tokio treats such a task as yielding: it goes to the end of the queue, and another worker is woken to help,
//! which costs a system call and a context switch per request. Polling again in place costs neither.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

use crate::turns;

/// Polls in a row, before other tasks get their turn. A request with its body needs two or three.
const POLLS: usize = 8;

/// Not being polled: a wake-up wakes the task.
const RESTING: u8 = 0;
/// Being polled, not woken.
const POLLED: u8 = 1;
/// It was woken while it was being polled.
const WOKEN: u8 = 2;

/// See the module.
pub(super) struct InPlace<F> {
    future: F,
    wakes: Arc<Wakes>,
    /// What the future is polled with: `wakes`.
    waker: Waker,
}

#[derive(Default)]
struct Wakes {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let noted = self
            .state
            .compare_exchange(POLLED, WOKEN, Ordering::AcqRel, Ordering::Acquire);
        if noted == Err(RESTING) {
            self.task.wake();
        }
    }
}

impl<F> InPlace<F> {
    pub(super) fn new(future: F) -> Self {
        let wakes = Arc::<Wakes>::default();
        Self {
            future,
            waker: wakes.clone().into(),
            wakes,
        }
    }
}

impl<F: Future + Unpin> Future for InPlace<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self {
            future,
            wakes,
            waker,
        } = &mut *self;
        turns::give_way();
        wakes.task.register(cx.waker());
        for _ in 0..POLLS {
            wakes.state.store(POLLED, Ordering::Release);
            let polled = Pin::new(&mut *future).poll(&mut Context::from_waker(waker));
            let woken = wakes.state.swap(RESTING, Ordering::AcqRel) == WOKEN;
            if polled.is_ready() || !woken {
                return polled;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A future that wakes itself `times` times before it is done.
    fn wakes_itself(times: usize) -> impl Future<Output = ()> + Unpin {
        let mut left = times;
        poll_fn(move |cx| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    }

    #[test]
    fn a_future_that_wakes_itself_goes_on_without_its_task_being_woken() {
        let task = Arc::<Task>::default();
        let waker = task.clone().into();
        let mut future = InPlace::new(wakes_itself(POLLS - 1));
        let polled = Pin::new(&mut future).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_ready());
        assert_eq!(task.0.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn one_that_never_stops_waking_itself_gives_way() {
        let task = Arc::<Task>::default();
        let waker = task.clone().into();
        let mut future = InPlace::new(wakes_itself(usize::MAX));
        for turn in 1..=3 {
            let polled = Pin::new(&mut future).poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            assert_eq!(task.0.load(Ordering::SeqCst), turn);
        }
    }

    #[test]
    fn whoever_wakes_it_later_wakes_its_task() {
        let task = Arc::<Task>::default();
        let waker = task.clone().into();
        let mut kept = None;
        let mut future = InPlace::new(poll_fn(|cx| {
            kept = Some(cx.waker().clone());
            Poll::<()>::Pending
        }));
        assert!(
            Pin::new(&mut future)
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        assert_eq!(task.0.load(Ordering::SeqCst), 0);
        drop(future);
        kept.expect("it was polled").wake();
        assert_eq!(task.0.load(Ordering::SeqCst), 1);
    }

    /// Whenever the other thread wakes it, before, during or after a poll: none is lost.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_of_another_thread_is_lost() {
        for round in 0..2_000 {
            let start_kind = Arc::new(AtomicUsize::new(0));
            let mut ringing = None;
            InPlace::new(poll_fn(|cx| {
                if start_kind.load(Ordering::Acquire) == 1 {
                    return Poll::Ready(());
                }
                ringing.get_or_insert_with(|| {
                    let (start_kind, waker) = (start_kind.clone(), cx.waker().clone());
                    thread::spawn(move || {
                        for _ in 0..round % 64 {
                            std::hint::spin_loop();
                        }
                        start_kind.store(1, Ordering::Release);
                        waker.wake();
                    })
                });
                Poll::Pending
            }))
            .await;
            ringing.expect("it was polled").join().expect("no panic");
        }
    }
}
