//! The Runtime API's state: who asks for an invocation, which one is under way, and what is said of it. Requests are in
//! [`crate::requests`].
//!
//! ```text
//!            GET next           begin              POST response, error
//! Starting ───────────▶ Asking ───────▶ Running ────────────────────────▶ Answered ─┐
//!    │ POST init/error             ▲                                                │ GET next
//!    ▼                             └────────────────────────────────────────────────┘
//!  Failed
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::error::FunctionError;

/// Pieces of a streamed answer that wait for the server to take them.
const PIECES: usize = 1;

/// One invocation, as the client gets it.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// The invocation's id.
    pub(crate) id: String,
    /// When the instance is killed, in ms since 1970.
    pub(crate) deadline_ms: u64,
    /// The function's ARN.
    pub(crate) arn: String,
    /// In AWS X-Ray's form, if the caller sent a trace context.
    pub(crate) trace: Option<String>,
    /// JSON text.
    pub(crate) body: Bytes,
    /// Longest answer in bytes that is held in memory.
    pub(crate) answer_bytes: usize,
}

/// What a client says of the invocation, in this order: one of the first three, or a head, pieces, and one of the last two.
#[derive(Debug)]
pub(crate) enum Said {
    /// The whole answer.
    Answer(Bytes),
    /// An error.
    Error(FunctionError),
    /// The answer was longer than may be: it was read and dropped.
    TooLong,
    /// Begins a streamed answer: the prelude's JSON text, if there is one.
    Head(Option<Bytes>),
    /// A piece of it.
    Piece(Bytes),
    /// It is complete.
    End,
    /// It is not, and this is why.
    Broken(FunctionError),
}

#[derive(Debug)]
enum Phase {
    Starting,
    Failed,
    /// Nothing is under way.
    Answered,
    /// An invocation that nobody has taken yet.
    Offered(Event, mpsc::Sender<Said>),
    /// One that a client has.
    Running(Event, mpsc::Sender<Said>),
    /// One whose answer is being read.
    Answering,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    asking: VecDeque<oneshot::Sender<Event>>,
    init_error: Option<FunctionError>,
}

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Api(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Somebody asked, or reported that the initialisation failed.
    changed: Notify,
}

/// Why a request has no place now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The id is not that of the invocation under way, or it is answered already.
    InvalidRequestId,
    /// It asks for an invocation while it has one, or reports a failed initialisation after it.
    InvalidStateTransition,
}

impl Api {
    /// Nobody has asked for anything.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State {
                phase: Phase::Starting,
                asking: VecDeque::new(),
                init_error: None,
            }),
            changed: Notify::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let state = self.0.state.lock();
        state.unwrap_or_else(|broken| broken.into_inner())
    }

    /// Waits until an invocation is asked for.
    ///
    /// # Errors
    /// The client reported that its initialisation failed.
    pub(crate) async fn asked(&self) -> Result<(), FunctionError> {
        loop {
            let changed = self.0.changed.notified();
            {
                let mut state = self.state();
                if let Some(error) = state.init_error.take() {
                    return Err(error);
                }
                state.asking.retain(|asking| !asking.is_closed());
                if !state.asking.is_empty() {
                    return Ok(());
                }
            }
            changed.await;
        }
    }

    /// Gives an invocation to who asks for one, now or next; what is said of it comes out of the receiver.
    pub(crate) fn begin(&self, event: Event) -> mpsc::Receiver<Said> {
        let (say, said) = mpsc::channel(PIECES);
        let mut state = self.state();
        state.phase = Phase::Offered(event.clone(), say.clone());
        while let Some(asking) = state.asking.pop_front() {
            if asking.send(event.clone()).is_ok() {
                state.phase = Phase::Running(event, say);
                break;
            }
        }
        said
    }

    /// A client asks for an invocation: this one, or the one that comes out of the receiver.
    pub(crate) fn ask(&self) -> Result<Asked, Refusal> {
        let mut state = self.state();
        match std::mem::replace(&mut state.phase, Phase::Answered) {
            Phase::Offered(event, say) => {
                state.phase = Phase::Running(event.clone(), say);
                return Ok(Asked::Now(event));
            }
            Phase::Starting | Phase::Answered => {}
            other => {
                state.phase = other;
                return Err(Refusal::InvalidStateTransition);
            }
        }
        let (give, given) = oneshot::channel();
        state.asking.push_back(give);
        self.0.changed.notify_one();
        Ok(Asked::Later(given))
    }

    /// A client begins to answer the invocation with this id.
    pub(crate) fn answer(&self, id: &str) -> Result<Answering, Refusal> {
        let mut state = self.state();
        match std::mem::replace(&mut state.phase, Phase::Answering) {
            Phase::Running(event, say) if event.id == id => Ok(Answering {
                api: self.clone(),
                held: Some((event, say)),
                has_begun: false,
            }),
            other => {
                state.phase = other;
                Err(Refusal::InvalidRequestId)
            }
        }
    }

    /// A client reports that its initialisation failed.
    pub(crate) fn init_failed(&self, error: FunctionError) -> Result<(), Refusal> {
        let mut state = self.state();
        if !matches!(state.phase, Phase::Starting) || !state.asking.is_empty() {
            return Err(Refusal::InvalidStateTransition);
        }
        state.phase = Phase::Failed;
        state.init_error = Some(error);
        self.0.changed.notify_one();
        Ok(())
    }
}

/// What a client that asks for an invocation gets.
#[derive(Debug)]
pub(crate) enum Asked {
    /// The one that waits.
    Now(Event),
    /// The next one.
    Later(oneshot::Receiver<Event>),
}

/// An answer that is being read. Dropped before anything was said, as when its connection breaks, it may be sent once more.
#[derive(Debug)]
pub(crate) struct Answering {
    api: Api,
    held: Option<(Event, mpsc::Sender<Said>)>,
    has_begun: bool,
}

impl Answering {
    /// Longest answer that is held in memory, in bytes.
    pub(crate) fn limit(&self) -> usize {
        self.held
            .as_ref()
            .map_or(0, |(event, _)| event.answer_bytes)
    }

    /// Says a part of a streamed answer, and waits while the server takes no more.
    pub(crate) async fn say(&mut self, said: Said) {
        self.has_begun = true;
        if let Some((_, say)) = &self.held {
            // Nobody hears it once the bootstrap is given up.
            let _ = say.send(said).await;
        }
    }

    /// Says the last of it.
    pub(crate) async fn finish(mut self, said: Said) {
        if let Some((_, say)) = self.held.take() {
            self.api.state().phase = Phase::Answered;
            let _ = say.send(said).await;
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if let Some((event, say)) = self.held.take() {
            self.api.state().phase = match self.has_begun {
                true => Phase::Answered,
                false => Phase::Running(event, say),
            };
        }
    }
}
