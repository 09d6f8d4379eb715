//! One request: into a block, along the route, out of the block.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hearth_abi::monotonic_ns;
use hearth_chain::{Block, Descriptor, Envelope, Instance, Kind, Note, Owner, Stay, TraceContext};
use tokio::sync::oneshot;

use super::Path;
use super::pending::{Back, Came, Entry};
use crate::chains::{Hop, InvokeError, Request};
use crate::engine::Admitted;
use crate::model::FunctionError;

/// When to try again after the pool was empty: some requests' time.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Longest wait for news of a member that takes nothing: rings that were full say nothing when they have room.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A request that waits for its answer. Dropping it gives the request up.
struct Waiting<'a> {
    path: &'a Path,
    number: u32,
    /// The block that it was put into, or the one that it came back in.
    block: Block,
    came: oneshot::Receiver<Back>,
    is_over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.path.requests.fetch_sub(1, Ordering::Relaxed);
        if self.is_over {
            // It is back, or its instance has ended.
            let _ = self.path.pool.free(self.block);
            return;
        }
        self.came.close();
        if let Ok(back) = self.came.try_recv() {
            let _ = self.path.pool.free(back.block);
        }
        // Else the descriptor is on its way, and a member may write to the block until it is back.
    }
}

impl Path {
    /// Sends a request along a route and waits for its answer.
    pub(in crate::chains) async fn invoke(
        self: &Arc<Self>,
        route: usize,
        request: Request,
        admitted: &Admitted,
    ) -> (Result<Bytes, InvokeError>, Vec<Hop>) {
        let limit = Duration::from_millis(self.spec.timeout_ms.into());
        let deadline = request.deadline.min(request.received + limit);
        let mut waiting = match self.begin(route, &request, deadline, admitted) {
            Ok(waiting) => waiting,
            Err(error) => return (Err(error), Vec::new()),
        };
        let answered = async {
            self.send_first(route, &waiting, &request).await;
            let looks = admitted.has_free_core();
            match looks.then(|| self.look_for(&mut waiting.came)).flatten() {
                Some(back) => Ok(back),
                None => (&mut waiting.came).await,
            }
        };
        let came = tokio::time::timeout_at(deadline.into(), answered).await;
        let block = match &came {
            Ok(Ok(back)) => back.block,
            _ => {
                let now = self.pending.with(waiting.number, |entry| entry.block);
                now.unwrap_or(waiting.block)
            }
        };
        let hops = self.hops(block, request.received);
        let result = match came {
            Ok(Ok(back)) => {
                waiting.is_over = true;
                waiting.block = block;
                self.result(back.came, block)
            }
            // The entry went without a word, which it does not.
            Ok(Err(_)) => Err(InvokeError::Internal("the request was lost".into())),
            Err(_) => {
                let hop = self.end_if_hung(waiting.number);
                Err(InvokeError::Timeout {
                    timeout_ms: self.spec.timeout_ms,
                    hop,
                })
            }
        };
        (result, hops)
    }

    /// Puts the payload into a block, or a run of blocks, and notes the request.
    fn begin(
        &self,
        route: usize,
        request: &Request,
        deadline: Instant,
        admitted: &Admitted,
    ) -> Result<Waiting<'_>, InvokeError> {
        let too_large = || InvokeError::TooLarge {
            bytes: request.payload.len() as u64,
            limit: self.pool.shape().payload_bytes().into(),
        };
        if request.payload.len() > self.pool.shape().payload_bytes() as usize {
            return Err(too_large());
        }
        let Ok(route) = u8::try_from(route) else {
            return Err(InvokeError::Internal(format!("route {route}")));
        };
        let (waiter, came) = oneshot::channel();
        // Its number is the entry's, and the block's owner by that.
        let number = self
            .pending
            .free_number(|| self.next_request.fetch_add(1, Ordering::Relaxed));
        let owner = Owner::Request { id: number, route };
        let Ok(block) = self.pool.allocate_for(owner, request.payload.len()) else {
            return Err(InvokeError::PoolEmpty {
                retry_after: RETRY_AFTER,
            });
        };
        let written = self.pool.write(block, &request.payload);
        let under_way = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        self.arrived.fetch_add(1, Ordering::Relaxed);
        let mut waiting = Waiting {
            path: self,
            number,
            block,
            came,
            // Until it is sent.
            is_over: true,
        };
        if written.is_err() {
            return Err(too_large());
        }
        let looks = self.looks(route, admitted);
        self.pool.describe(
            block,
            &Envelope {
                deadline_unix_us: unix_us(deadline),
                id: *request.id.0.as_bytes(),
                trace: request.traceparent.as_deref().and_then(TraceContext::parse),
                looks,
                crowded: self.crowd.note(under_way),
                together: self.together(looks, under_way),
            },
        );
        self.recent.add(number, request.id);
        self.pending
            .add(number, Entry::new(block, route, deadline, waiter));
        waiting.is_over = false;
        Ok(waiting)
    }

    /// Sends to the route's first member, as soon as one of its instances takes it.
    async fn send_first(&self, route: usize, waiting: &Waiting<'_>, request: &Request) {
        let descriptor = Descriptor {
            request: waiting.number,
            generation: waiting.block.generation,
            target: Instance::GATEWAY,
            block: waiting.block.index,
            // Compared with what a payload may have, which is less.
            len: request.payload.len() as u32,
            route: route as u8,
            hop: 0,
            table: self.table,
            kind: Kind::Pass,
            more: false,
        };
        self.send_on(descriptor).await;
    }

    /// Sends a descriptor to the member at its place in the route, as soon as one of its instances takes it.
    pub(super) async fn send_on(&self, descriptor: Descriptor) {
        let next = self
            .routes
            .hop(descriptor.table, descriptor.route, descriptor.hop);
        // Routes are checked before they are published, and this one is in them.
        let Ok(Some(member)) = next else { return };
        loop {
            let news = self.news.notified();
            if self.send_to(member, descriptor) {
                return;
            }
            // A member whose instance has ended gets another.
            let _ = tokio::time::timeout(LOOK_AGAIN, news).await;
        }
    }

    /// Notes to whom a descriptor is sent.
    pub(super) fn note(&self, descriptor: &Descriptor) {
        self.pool.note(
            Block::of(descriptor),
            Note {
                holder: descriptor.target,
                epoch: 0,
                hop: descriptor.hop,
            },
        );
    }

    fn result(&self, came: Came, block: Block) -> Result<Bytes, InvokeError> {
        // The block is this request's until it is freed, and the length was checked.
        let read = |len| {
            let mut bytes = Vec::new();
            let read = self.pool.read(block, len, &mut bytes);
            read.map(|()| bytes)
                .map_err(|refused| InvokeError::Internal(refused.to_string()))
        };
        match came {
            Came::Answer(len) => {
                let bytes = read(len)?;
                // Whoever reads the answer relies on it, and a member may send what it likes.
                match check_result(&bytes) {
                    Ok(()) => Ok(bytes.into()),
                    Err(error) => Err(InvokeError::Member {
                        member: self.last_of(block),
                        error: FunctionError {
                            error_type: "Runtime.InvalidResult".into(),
                            error_message: format!("the result is not JSON: {error}"),
                            stack_trace: Vec::new(),
                        },
                    }),
                }
            }
            Came::Failure { member, len } => {
                let text = read(len)?;
                let error: FunctionError =
                    serde_json::from_slice(&text).unwrap_or_else(|_| FunctionError {
                        error_type: "Runtime.InvalidError".into(),
                        error_message: "the member's error is not JSON".into(),
                        stack_trace: Vec::new(),
                    });
                Err(match error.error_type.as_str() {
                    "Runtime.ResultTooLarge" => InvokeError::ResultTooLarge {
                        member,
                        limit: self.pool.shape().payload_bytes().into(),
                    },
                    "Chain.PoolExhausted" => InvokeError::PoolEmpty {
                        retry_after: RETRY_AFTER,
                    },
                    _ => InvokeError::Member { member, error },
                })
            }
            Came::Ended { member, reason } => Err(InvokeError::Crashed { member, reason }),
            Came::Broken { member, reason } => Err(InvokeError::Broken { member, reason }),
        }
    }

    /// The member that had a request last, by its members' word.
    fn last_of(&self, block: Block) -> String {
        let stays = self.pool.stays(block).unwrap_or_default();
        let last = stays.last().map_or(Instance::GATEWAY, |stay| stay.instance);
        self.name(self.member_of(last)).to_string()
    }

    /// The stays that the members have noted, in ns since the request was received.
    fn hops(&self, block: Block, received: Instant) -> Vec<Hop> {
        let since = u64::try_from(received.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let received_ns = monotonic_ns().saturating_sub(since);
        let hop = |stay: Stay| {
            let member = self.member_of(stay.instance).0;
            let entered_ns = stay.entered_ns.saturating_sub(received_ns);
            (member > 0).then(|| Hop {
                member,
                instance: stay.instance.0,
                is_call: stay.is_call,
                entered_ns,
                left_ns: Some(entered_ns.saturating_add(stay.took_ns)),
            })
        };
        let stays = self.pool.stays(block).unwrap_or_default();
        let mut hops: Vec<Hop> = stays.into_iter().filter_map(hop).collect();
        hops.sort_by_key(|hop| hop.entered_ns);
        hops
    }
}

// Kept as a function of its own: `make bench SUITE=chains` counts its calls.
#[inline(never)]
fn check_result(result: &[u8]) -> serde_json::Result<()> {
    serde_json::from_slice::<serde::de::IgnoredAny>(result).map(drop)
}

/// The time of day at an instant, in µs since 1970.
fn unix_us(at: Instant) -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let left = at.saturating_duration_since(Instant::now());
    u64::try_from((now + left).as_micros()).unwrap_or(u64::MAX)
}
