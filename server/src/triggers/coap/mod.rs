//! CoAP at a UDP port (RFC 7252, with block-wise transfer by RFC 7959): each request is an invocation of the function, or of the
//! chain's route that its path begins with. `server/docs/protocols.md` says how.
//!
//! A datagram goes through [`message`] (what is it?), [`exchanges`] (was it here before?), [`transfers`] (is it a piece?), the
//! function, [`answer`], and out in pieces that the [`allowance`] of its source has room for.

mod allowance;
mod answer;
mod block;
mod code;
mod exchanges;
mod links;
mod message;
mod outgoing;
mod request;
mod transfers;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use coap_lite::MessageType;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::timeout;

use super::Triggers;
use super::datagrams::Datagram;
use super::socket::DatagramSocket;
use super::target::Target;
use crate::model::Port;
use crate::ports::MessageCounters;

use allowance::Allowance;
use answer::Answer;
use code::Code;
use exchanges::{Exchanges, Seen};
use message::{Call, Head, Incoming};
use transfers::{Downloads, Place, Uploads};

/// How long a client waits for an answer before it gets a receipt: well before it would repeat itself, after ACK_TIMEOUT = 2 s.
const RECEIPT: Duration = Duration::from_secs(1);

/// One port.
pub(super) struct Endpoint {
    triggers: Triggers,
    port: Port,
    socket: Arc<DatagramSocket>,
    counters: Arc<MessageCounters>,
    /// Of the next message that is no receipt.
    next_id: AtomicU16,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    exchanges: Exchanges,
    uploads: Uploads,
    downloads: Downloads,
    allowance: Allowance,
    /// Answers of which no receipt has come.
    unconfirmed: HashMap<(SocketAddr, u16), oneshot::Sender<()>>,
}

impl Endpoint {
    pub(super) fn new(
        triggers: Triggers,
        port: Port,
        socket: Arc<DatagramSocket>,
        counters: Arc<MessageCounters>,
    ) -> Self {
        let mut first = [0; 2];
        // Guessing it helps nobody but who wants to end repetitions.
        let _ = getrandom::fill(&mut first);
        Self {
            triggers,
            port,
            socket,
            counters,
            next_id: AtomicU16::new(u16::from_ne_bytes(first)),
            state: Mutex::default(),
        }
    }

    /// Takes in what came for `target`. A request that is to run does so on a task of its own, which holds the permit.
    pub(super) async fn receive(
        self: &Arc<Self>,
        datagram: Datagram,
        target: Target,
        permit: OwnedSemaphorePermit,
    ) {
        // To a group: its members answer at another time, or not at all (RFC 7252, 8).
        if datagram.destination.is_some_and(|to| to.is_multicast()) {
            return;
        }
        let (peer, now) = (datagram.source, Instant::now());
        let bytes = datagram.payload.len();
        self.state.lock().allowance.received(peer.ip(), bytes, now);
        match message::read(&datagram.payload) {
            Incoming::Nothing => self.counters.refused(),
            Incoming::Receipt(id) => {
                let waiting = self.state.lock().unconfirmed.remove(&(peer, id));
                if let Some(waiting) = waiting {
                    let _ = waiting.send(());
                }
            }
            Incoming::Refuse(id) => {
                self.counters.refused();
                self.send_empty(MessageType::Reset, id, &datagram).await;
            }
            Incoming::Request(head, call) => {
                let seen = self.state.lock().exchanges.begin(peer, head.id, now);
                match seen {
                    Seen::New => {
                        let (endpoint, datagram) = (self.clone(), Arc::new(datagram));
                        tokio::spawn(async move {
                            endpoint.run(&datagram, &head, call, target, permit).await;
                        });
                    }
                    Seen::TooMany => {
                        self.counters.refused();
                        let answer = Answer::later(Code::TOO_MANY);
                        let answer = self.whole(&answer, &head, peer);
                        self.send(&answer, &datagram).await;
                    }
                    seen => self.again(seen, &head, &datagram).await,
                }
            }
        }
    }

    /// A request that was here before.
    async fn again(&self, seen: Seen, head: &Head, datagram: &Datagram) {
        self.counters.duplicate();
        match seen {
            Seen::Running(true) if head.confirmable => {
                self.send_empty(MessageType::Acknowledgement, head.id, datagram)
                    .await;
            }
            Seen::Answered(answer) if head.confirmable && !answer.is_empty() => {
                self.send(&answer, datagram).await;
            }
            _ => {}
        }
    }

    /// Answers a request: with its receipt if that is soon, else on its own.
    async fn run(
        self: Arc<Self>,
        client: &Arc<Datagram>,
        head: &Head,
        call: Result<Call, Code>,
        target: Target,
        permit: OwnedSemaphorePermit,
    ) {
        let peer = client.source;
        // Whatever becomes of this task, the request has ended then.
        let ended = Ended {
            endpoint: &self,
            peer,
            id: head.id,
            answer: Bytes::new(),
        };
        let asked = call.as_ref().ok().cloned();
        let answering = self.answer(client, head, call, target);
        let mut answering = std::pin::pin!(answering);
        let in_time = match head.confirmable {
            true => timeout(RECEIPT, &mut answering).await.ok(),
            false => Some((&mut answering).await),
        };
        let Some(reply) = in_time else {
            self.state.lock().exchanges.acknowledged(peer, head.id);
            let receipt = MessageType::Acknowledgement;
            self.send_empty(receipt, head.id, client).await;
            let reply = answering.await;
            let receipt = message::write_empty(receipt, head.id);
            ended.with(receipt);
            // What follows is about a client that does not confirm.
            drop(permit);
            self.send_until_confirmed(reply, head, asked.as_ref(), client)
                .await;
            return;
        };
        let way = match head.confirmable {
            true => message::Way {
                kind: MessageType::Acknowledgement,
                id: head.id,
            },
            false => message::Way {
                kind: MessageType::NonConfirmable,
                id: self.id(),
            },
        };
        let bytes = self.write(way, &reply, head, asked.as_ref(), peer);
        ended.with(bytes.clone());
        self.send(&bytes, client).await;
    }

    /// The id of the next message.
    fn id(&self) -> u16 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// How long an answer may be now.
    fn room(&self, peer: SocketAddr) -> usize {
        let allowance = &mut self.state.lock().allowance;
        allowance.left(peer.ip(), Instant::now())
    }
}

/// What is to be sent: an answer, of which only a piece may be asked for.
struct Reply(Arc<Answer>);

impl Reply {
    fn of(answer: Arc<Answer>) -> Self {
        Self(answer)
    }
}

impl std::convert::From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self(Arc::new(answer))
    }
}

impl Place {
    fn of(peer: SocketAddr, call: &Call) -> Self {
        Self {
            peer,
            method: call.method.0,
            path: call.path.clone(),
            query: call.query.clone(),
        }
    }
}

/// A request that runs; it has ended when this is dropped.
struct Ended<'a> {
    endpoint: &'a Endpoint,
    peer: SocketAddr,
    id: u16,
    /// For its duplicates.
    answer: Bytes,
}

impl Ended<'_> {
    fn with(mut self, answer: Bytes) {
        self.answer = answer;
    }
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let answer = std::mem::take(&mut self.answer);
        let mut state = self.endpoint.state.lock();
        state.exchanges.end(self.peer, self.id, answer);
    }
}
