//! What the server asks for.

use std::net::SocketAddr;
use std::time::Duration;

use super::frame::{Frame, Malformed, WITHOUT_TEXT};
use super::policy::{address, both, halves, ports_of};
use super::{Key, LeafNumber, Protocol, Resolved, Sequence};

/// Size of every request.
pub const REQUEST_BYTES: usize = WITHOUT_TEXT;

/// Flag: the template forks its instances.
const FORKS: u8 = 1;
/// Flag: the template is to be dumped.
const DUMPABLE: u8 = 2;
/// Flag: a limit for a restore is given.
const RESTORES: u8 = 4;
/// Flag: what the import has started, in the template's cgroup, is meant, too.
const WITH_TEMPLATE: u8 = 1;

/// The numbers of a sandbox to be made; its [`Papers`](super::Papers) come along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// First of its two host uids.
    pub uid_base: u32,
    /// Memory of one instance, bytes.
    pub memory_bytes: u64,
    /// Most instances at one time.
    pub max_instances: u32,
    /// Whether the template forks its instances.
    pub forks: bool,
    /// Whether the template is to be dumped.
    pub dumpable: bool,
    /// Longest time that the restore of the image in the papers may take. None without an image.
    pub restore_limit: Option<Duration>,
}

/// One instance, as its sandbox's owner means it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Its sandbox.
    pub key: Key,
    /// Its cgroup.
    pub leaf: LeafNumber,
    /// Its process, as the server's pid namespace, which is the host's, numbers it; 0 before there is one.
    pub pid: u32,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Make a sandbox. Comes with its papers.
    Create(Sequence, Order),
    /// Destroy one, and say so.
    Destroy(Key),
    /// Make an instance cgroup at once.
    InstanceCgroup(Sequence, Key),
    /// Make so many instance cgroups for later.
    FillPool(Key, u32),
    /// Move an instance into its cgroup.
    Attach(Target),
    /// Kill an instance and what it started.
    Kill(Target),
    /// The same, and remove its cgroup.
    Release(Target),
    /// Stop an instance and what it started; with what its import started, if true.
    Freeze(Target, bool),
    /// Resume what [`Request::Freeze`] has stopped.
    Thaw(Target, bool),
    /// Stop a template and what it started.
    FreezeTemplate(Key),
    /// Resume it.
    ThawTemplate(Key),
    /// Keep a pre-warmed sandbox for the runtime of this name, with this first uid.
    KeepPrewarmed(u32, String),
    /// End that of a runtime.
    EndPrewarmed(String),
    /// Dump the template of a sandbox, if it has no more than so many memory mappings, to the image of this name.
    Dump(Sequence, Key, u64, String),
    /// Remove an image.
    RemoveImage(Sequence, String),
    /// Destroy all sandboxes, and say so. Nothing can be made after that.
    Shutdown(Sequence),
    /// Give a sandbox that has a network another policy, which comes along as a memfd. Cuts what is not allowed any more.
    SetPolicy(Sequence, Key),
    /// Allow an address that a name resolved to.
    Allow(Sequence, Key, Resolved),
    /// What has the kernel counted for a sandbox?
    Counters(Sequence, Key),
    /// Listen at this port of [`BROKER`](super::BROKER), in a sandbox's network namespace.
    Listen(Sequence, Key, u16),
    /// Begin a TCP connection in a sandbox's network namespace: it goes wherever one of the sandbox's own would.
    Dial(Sequence, Key, SocketAddr),
}

impl Request {
    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        self.frame().encode()
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`Malformed`], for everything that [`Self::encode`] does not write.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let request = Self::of(&Frame::decode::<REQUEST_BYTES>(bytes)?)?;
        if request.encode() != *bytes {
            return Err(Malformed::Form);
        }
        Ok(request)
    }

    /// How many descriptors come with it.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        usize::from(matches!(self, Self::Create(..) | Self::SetPolicy(..)))
    }

    fn frame(&self) -> Frame {
        let empty = Frame::default();
        let target = |kind, target: &Target, flags| Frame {
            kind,
            flags,
            key: target.key,
            leaf: target.leaf,
            number: target.pid,
            ..Frame::default()
        };
        let with_template = |with| if with { WITH_TEMPLATE } else { 0 };
        match self {
            Self::Create(sequence, order) => {
                let flag = |set, flag| if set { flag } else { 0 };
                Frame {
                    kind: 1,
                    flags: flag(order.forks, FORKS)
                        | flag(order.dumpable, DUMPABLE)
                        | flag(order.restore_limit.is_some(), RESTORES),
                    sequence: *sequence,
                    number: order.uid_base,
                    amount: order.memory_bytes,
                    count: order.max_instances,
                    micros: order.restore_limit.map_or(0, micros),
                    ..empty
                }
            }
            Self::Destroy(key) => Frame {
                kind: 2,
                key: *key,
                ..empty
            },
            Self::InstanceCgroup(sequence, key) => Frame {
                kind: 3,
                sequence: *sequence,
                key: *key,
                ..empty
            },
            Self::FillPool(key, count) => Frame {
                kind: 4,
                key: *key,
                count: *count,
                ..empty
            },
            Self::Attach(instance) => target(5, instance, 0),
            Self::Kill(instance) => target(6, instance, 0),
            Self::Release(instance) => target(7, instance, 0),
            Self::Freeze(instance, with) => target(8, instance, with_template(*with)),
            Self::Thaw(instance, with) => target(9, instance, with_template(*with)),
            Self::FreezeTemplate(key) => Frame {
                kind: 10,
                key: *key,
                ..empty
            },
            Self::ThawTemplate(key) => Frame {
                kind: 11,
                key: *key,
                ..empty
            },
            Self::KeepPrewarmed(uid_base, runtime) => Frame {
                kind: 12,
                number: *uid_base,
                name: runtime.clone(),
                ..empty
            },
            Self::EndPrewarmed(runtime) => Frame {
                kind: 13,
                name: runtime.clone(),
                ..empty
            },
            Self::Dump(sequence, key, mappings, image) => Frame {
                kind: 14,
                sequence: *sequence,
                key: *key,
                amount: *mappings,
                name: image.clone(),
                ..empty
            },
            Self::RemoveImage(sequence, image) => Frame {
                kind: 15,
                sequence: *sequence,
                name: image.clone(),
                ..empty
            },
            Self::Shutdown(sequence) => Frame {
                kind: 16,
                sequence: *sequence,
                ..empty
            },
            Self::SetPolicy(sequence, key) => Frame {
                kind: 17,
                sequence: *sequence,
                key: *key,
                ..empty
            },
            Self::Allow(sequence, key, resolved) => {
                let [high, low] = halves(resolved.address);
                Frame {
                    kind: 18,
                    flags: resolved.protocol.number(),
                    sequence: *sequence,
                    key: *key,
                    leaf: high,
                    amount: low,
                    count: both(&resolved.ports),
                    micros: micros(resolved.ttl),
                    ..empty
                }
            }
            Self::Counters(sequence, key) => Frame {
                kind: 19,
                sequence: *sequence,
                key: *key,
                ..empty
            },
            Self::Listen(sequence, key, port) => Frame {
                kind: 20,
                sequence: *sequence,
                key: *key,
                number: (*port).into(),
                ..empty
            },
            Self::Dial(sequence, key, to) => {
                let [high, low] = halves(to.ip());
                Frame {
                    kind: 21,
                    sequence: *sequence,
                    key: *key,
                    leaf: high,
                    amount: low,
                    number: to.port().into(),
                    ..empty
                }
            }
        }
    }

    /// What is not looked at here is compared with the one valid form afterwards.
    fn of(frame: &Frame) -> Result<Self, Malformed> {
        let has = |flag: u8| frame.flags & flag != 0;
        let target = Target {
            key: frame.key,
            leaf: frame.leaf,
            pid: frame.number,
        };
        let (sequence, key, name) = (frame.sequence, frame.key, frame.name.clone());
        Ok(match frame.kind {
            1 => Self::Create(
                sequence,
                Order {
                    uid_base: frame.number,
                    memory_bytes: frame.amount,
                    max_instances: frame.count,
                    forks: has(FORKS),
                    dumpable: has(DUMPABLE),
                    restore_limit: has(RESTORES).then(|| Duration::from_micros(frame.micros)),
                },
            ),
            2 => Self::Destroy(key),
            3 => Self::InstanceCgroup(sequence, key),
            4 => Self::FillPool(key, frame.count),
            5 => Self::Attach(target),
            6 => Self::Kill(target),
            7 => Self::Release(target),
            8 => Self::Freeze(target, has(WITH_TEMPLATE)),
            9 => Self::Thaw(target, has(WITH_TEMPLATE)),
            10 => Self::FreezeTemplate(key),
            11 => Self::ThawTemplate(key),
            12 => Self::KeepPrewarmed(frame.number, name),
            13 => Self::EndPrewarmed(name),
            14 => Self::Dump(sequence, key, frame.amount, name),
            15 => Self::RemoveImage(sequence, name),
            16 => Self::Shutdown(sequence),
            17 => Self::SetPolicy(sequence, key),
            18 => Self::Allow(
                sequence,
                key,
                Resolved {
                    address: address([frame.leaf, frame.amount]),
                    protocol: Protocol::of_number(frame.flags).ok_or(Malformed::Form)?,
                    ports: ports_of(frame.count),
                    ttl: Duration::from_micros(frame.micros),
                },
            ),
            19 => Self::Counters(sequence, key),
            // A port that is cut here is not the one valid form.
            20 => Self::Listen(sequence, key, frame.number as u16),
            21 => Self::Dial(
                sequence,
                key,
                SocketAddr::new(address([frame.leaf, frame.amount]), frame.number as u16),
            ),
            kind => return Err(Malformed::Kind(kind)),
        })
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
