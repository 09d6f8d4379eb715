//! The members of a live chain: their instances, which are started, told of each other, and replaced when they end.

mod cpu;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use hearth_chain::Member;
use hearth_chain::join::Join;
use hearth_host::SandboxError;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::watch::Watch;
use super::path::{Numbers, Path, Seat, SeatError};
use super::{ActivateError, MemberStatus};
use crate::engine::{Engine, EngineError, HeldVersion};
use crate::instance::{Instance, JoinError};
use crate::model::chain::Version;
use crate::scheduler::BootFailure;

/// Why there is no instance.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("{}", .0.reason)]
    Boot(Arc<BootFailure>),
    #[error(transparent)]
    Seat(#[from] SeatError),
    #[error(transparent)]
    Join(#[from] JoinError),
    #[error("it does not get the chain's cores: {0}")]
    Cores(SandboxError),
}

/// One member.
struct One {
    name: Arc<str>,
    number: Member,
    function: HeldVersion,
    concurrency: u32,
    running: AtomicU32,
    restarts: AtomicU64,
}

/// An instance that has joined.
struct Joined {
    seat: Arc<Seat>,
    instance: Instance,
    /// Its limit in each period of the scheduler's, µs; 0 before it has one of its own.
    cpu_quota_us: u32,
    /// When that was said.
    cpu_limited_at: Option<Instant>,
}

/// See the module.
pub(super) struct Members {
    path: Arc<Path>,
    all: Vec<Arc<One>>,
    numbers: Numbers,
    /// Cores that its instances have for themselves; none where they share them.
    cores: BTreeSet<u32>,
    /// Locked while one joins, so that each pair is told of each other once.
    joined: tokio::sync::Mutex<Vec<Joined>>,
}

impl Members {
    /// Starts all instances and lets them join.
    pub(super) async fn start(
        engine: &Engine,
        version: &Version,
        path: Arc<Path>,
        ending: CancellationToken,
    ) -> Result<Arc<Self>, ActivateError> {
        let mut all = Vec::new();
        for ((name, member), number) in version.spec.members.iter().zip(1..) {
            let wrong = |reason: String| ActivateError::Member {
                member: name.clone(),
                reason,
            };
            let function_version = version.functions.get(name).copied();
            let function_version =
                function_version.ok_or_else(|| wrong("its version is unknown".into()))?;
            let held = engine.held(&member.function, function_version).await;
            let function = held.map_err(|error| match error {
                EngineError::NotFound(_) => wrong(error.to_string()),
                EngineError::HostExhausted(reason) => ActivateError::HostExhausted(reason),
                other => ActivateError::Internal(other.to_string()),
            })?;
            let max = function.spec.max_concurrency;
            if member.concurrency > max {
                return Err(wrong(format!(
                    "its concurrency is {}, and its function may have {max} instances",
                    member.concurrency
                )));
            }
            all.push(Arc::new(One {
                name: name.as_str().into(),
                number: Member(number),
                function,
                concurrency: member.concurrency,
                running: AtomicU32::new(0),
                restarts: AtomicU64::new(0),
            }));
        }
        let members = Arc::new(Self {
            path,
            all,
            numbers: Numbers::default(),
            cores: version.spec.dedicated_cores(),
            joined: tokio::sync::Mutex::default(),
        });
        members.start_all(&ending).await?;
        Ok(members)
    }

    /// All members at once, the instances of each one after the other: its template is what they wait for.
    async fn start_all(self: &Arc<Self>, ending: &CancellationToken) -> Result<(), ActivateError> {
        let mut starts: JoinSet<Result<(), ActivateError>> = JoinSet::new();
        for one in &self.all {
            let (members, one, ending) = (self.clone(), one.clone(), ending.clone());
            starts.spawn(async move {
                for _ in 0..one.concurrency {
                    members
                        .start_one(&one, &ending)
                        .await
                        .map_err(|error| match &error {
                            StartError::Boot(failure) if failure.is_of_host() => {
                                ActivateError::HostExhausted(error.to_string())
                            }
                            _ => ActivateError::Member {
                                member: one.name.to_string(),
                                reason: error.to_string(),
                            },
                        })?;
                }
                Ok(())
            });
        }
        while let Some(started) = starts.join_next().await {
            started.map_err(|error| ActivateError::Internal(error.to_string()))??;
        }
        Ok(())
    }

    /// Starts an instance and watches it.
    async fn start_one(
        self: &Arc<Self>,
        one: &Arc<One>,
        ending: &CancellationToken,
    ) -> Result<(), StartError> {
        let instance = one.function.start_held().await.map_err(StartError::Boot)?;
        if !self.cores.is_empty() {
            let given = instance.dedicate(&self.cores).await;
            given.map_err(StartError::Cores)?;
        }
        let vitals = instance.vitals.clone();
        let seat = self.join(one, instance).await?;
        one.running.fetch_add(1, Ordering::Relaxed);
        let watch = Watch {
            // Not of these, which would keep themselves.
            members: Arc::downgrade(self),
            one: one.clone(),
            seat,
            vitals,
            ending: ending.clone(),
        };
        watch.begin();
        Ok(())
    }

    /// Ends an instance, if it has not by itself; then nobody can write to what it had in hand.
    async fn end(&self, seat: &Arc<Seat>, reason: &str) {
        let ended = {
            let mut joined = self.joined.lock().await;
            let at = joined
                .iter()
                .position(|other| other.seat.instance == seat.instance);
            at.map(|at| joined.swap_remove(at))
        };
        if let Some(Joined { instance, .. }) = ended {
            let vitals = instance.vitals.clone();
            drop(instance);
            vitals.died().await;
        }
        self.path.unseat(seat, reason);
    }

    /// Makes an instance a member: gives it the chain's memory, and tells it and its peers of each other.
    async fn join(&self, one: &Arc<One>, mut instance: Instance) -> Result<Arc<Seat>, StartError> {
        let connection = self.path.connect().await?;
        let (seat, papers) = self
            .path
            .receive_instance(&self.numbers, one.number, connection)?;
        let (path, number) = (Arc::downgrade(&self.path), seat.instance);
        instance
            .logs
            .follow_owner(move || path.upgrade()?.works_on(number));
        let told = async {
            instance.begin_joining().await?;
            let descriptors = papers.descriptors.each_ref().map(AsFd::as_fd);
            instance
                .tell(&papers.message.encode(), &descriptors)
                .await?;
            instance.tell(&self.path.names().encode(), &[]).await
        };
        if let Err(error) = told.await {
            self.path.unseat(&seat, "it did not join");
            return Err(error.into());
        }
        let mut joined = self.joined.lock().await;
        joined.push(Joined {
            seat: seat.clone(),
            instance,
            cpu_quota_us: 0,
            cpu_limited_at: None,
        });
        // The new one is the last, and its own peer where a member may send to itself.
        let (others, new) = joined.split_at(joined.len() - 1);
        let new = &new[0];
        let introduced = async {
            for other in others.iter().chain([new]) {
                self.introduce(new, other).await?;
            }
            Ok::<_, StartError>(())
        };
        if let Err(error) = introduced.await {
            joined.pop();
            drop(joined);
            self.path.unseat(&seat, "it did not join");
            return Err(error);
        }
        // Those who are told of it may send to it at once, and what it then sends is looked up by its seat.
        self.path.seat(&seat);
        for other in others {
            // One that does not listen is ended; the new one is none the worse.
            if self.introduce(other, new).await.is_err() {
                other.seat.hung.cancel();
            }
        }
        Ok(seat)
    }

    /// Tells an instance of a peer, if they have to do with each other.
    async fn introduce(&self, to: &Joined, peer: &Joined) -> Result<(), StartError> {
        let (sends, receives) = (
            self.path.has_edge(peer.seat.member, to.seat.member),
            self.path.has_edge(to.seat.member, peer.seat.member),
        );
        if !sends && !receives {
            return Ok(());
        }
        let message = Join::Peer {
            instance: peer.seat.instance,
            member: peer.seat.member,
            sends,
            receives,
        };
        let board = peer.seat.board.for_peer().map_err(SeatError::from)?;
        to.instance
            .tell(&message.encode(), &[board.as_fd()])
            .await?;
        self.path.notify(&to.seat);
        Ok(())
    }

    /// The members' figures.
    pub(super) fn status(&self, version: &Version) -> Vec<MemberStatus> {
        let functions: &BTreeMap<String, u32> = &version.functions;
        let times = self.cpu_times();
        self.all
            .iter()
            .map(|one| MemberStatus {
                member: one.number.0,
                function_version: functions.get(&*one.name).copied().unwrap_or_default(),
                instances: one.running.load(Ordering::Relaxed),
                restarts: one.restarts.load(Ordering::Relaxed),
                cpu: times.get(&one.number.0).copied().unwrap_or_default(),
                work: self.path.work_of(one.number),
            })
            .collect()
    }
}
