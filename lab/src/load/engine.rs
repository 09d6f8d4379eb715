//! Connections, time limits and the wait for either.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;

use super::alarm::Alarm;
use super::clock;
use super::connection::{Connection, Progress};
use super::plan::Plan;
use super::sample::{Fault, Sample};
use super::targets::Targets;
use super::tls::Tls;

/// Room for what one read brings. A longer answer takes several.
const BUFFER: usize = 64 << 10;

/// Events that are taken from the kernel at a time.
const EVENTS: usize = 256;

/// Tokens of what is no connection.
const TIMER: u64 = u64::MAX;
const CONTROL: u64 = u64::MAX - 1;

/// When an exchange is given up.
struct Deadline {
    at: u64,
    slot: usize,
    /// Which exchange of all.
    serial: u64,
}

/// Sends requests and collects what came of them. Times are in ns from its beginning.
pub(super) struct Engine {
    epoll: OwnedFd,
    alarm: Alarm,
    begin: u64,
    targets: Targets,
    /// Idle connections of each address, the last used on top.
    idle: Vec<Vec<usize>>,
    slots: Vec<Option<(Connection, u64)>>,
    free: Vec<usize>,
    deadlines: VecDeque<Deadline>,
    serial: u64,
    timeout: u64,
    keep_alive: usize,
    capture: usize,
    buffer: Vec<u8>,
    /// Exchanges under way.
    pub(super) in_flight: usize,
    /// Those that are over, until they are taken.
    pub(super) finished: Vec<Sample>,
    /// Whether the other end of the control descriptor is gone.
    pub(super) is_cancelled: bool,
}

impl Engine {
    /// For a plan that was checked. `control` is a pipe or socket whose end cancels the run.
    pub(super) fn new(plan: &Plan, control: Option<BorrowedFd<'_>>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let alarm = Alarm::new()?;
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(
            &epoll,
            alarm.descriptor(),
            epoll::EventData::new_u64(TIMER),
            edge,
        )?;
        if let Some(control) = control {
            let data = epoll::EventData::new_u64(CONTROL);
            epoll::add(&epoll, control, data, epoll::EventFlags::RDHUP)?;
        }
        let targets = Targets::resolve(plan)?;
        Ok(Self {
            epoll,
            alarm,
            begin: clock::monotonic(),
            idle: vec![Vec::new(); targets.addresses.len()],
            targets,
            slots: Vec::new(),
            free: Vec::new(),
            deadlines: VecDeque::new(),
            serial: 0,
            timeout: plan.timeout_ms * 1_000_000,
            keep_alive: plan.keep_alive,
            capture: plan.capture_bytes,
            buffer: vec![0; BUFFER],
            in_flight: 0,
            finished: Vec::new(),
            is_cancelled: false,
        })
    }

    pub(super) fn now(&self) -> u64 {
        clock::monotonic() - self.begin
    }

    /// Makes this moment 0. There must be no exchange under way.
    pub(super) fn restart_clock(&mut self) {
        self.begin = clock::monotonic();
    }

    /// Number of requests to choose from.
    pub(super) fn requests(&self) -> usize {
        self.targets.requests.len()
    }

    /// Opens connections ahead, in turn to all addresses, and waits for them until `until`. Those that fail are left out.
    pub(super) fn connect(&mut self, count: usize, until: u64) -> io::Result<()> {
        let mut opened = Vec::new();
        for number in 0..count {
            let address = number % self.targets.addresses.len();
            if let Ok(slot) = self.open(address) {
                opened.push((address, slot));
            }
        }
        let waits = |engine: &Self| {
            opened.iter().any(|(_, slot)| {
                let slot = engine.slots[*slot].as_ref();
                slot.is_some_and(|(connection, _)| !connection.is_open())
            })
        };
        while waits(self) && self.now() < until && !self.is_cancelled {
            self.wait(Some(until))?;
        }
        for (address, slot) in opened {
            match &self.slots[slot] {
                Some((connection, _)) if connection.is_open() => self.idle[address].push(slot),
                Some(_) => self.close(slot),
                None => {}
            }
        }
        Ok(())
    }

    fn open(&mut self, address: usize) -> io::Result<usize> {
        let (address, tls) = &self.targets.addresses[address];
        let tls = tls.as_ref().map(Tls::connect).transpose()?;
        let connection = Connection::open(*address, tls, self.capture)?;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let flags = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(slot as u64);
        if let Err(error) = epoll::add(&self.epoll, connection.stream(), data, flags) {
            self.free.push(slot);
            return Err(error.into());
        }
        self.slots[slot] = Some((connection, 0));
        Ok(slot)
    }

    fn close(&mut self, slot: usize) {
        if self.slots[slot].take().is_some() {
            self.free.push(slot);
        }
    }

    /// Sends a request now. What comes of it is in [`Self::finished`] later, or at once if it cannot be sent.
    pub(super) fn start(&mut self, request: usize, burst: usize, intended: Option<u64>) {
        let address = self.targets.requests[request].address;
        let sent = self.now();
        let mut sample = Sample {
            request: request as u32,
            burst: burst as u32,
            intended: intended.unwrap_or(sent),
            sent,
            ..Sample::default()
        };
        let slot = match self.idle[address].pop() {
            Some(slot) => slot,
            None => match self.open(address) {
                Ok(slot) => slot,
                Err(_) => {
                    sample.last = self.now();
                    sample.fault = Some(Fault::Connect);
                    self.finished.push(sample);
                    return;
                }
            },
        };
        self.serial += 1;
        self.deadlines.push_back(Deadline {
            at: sent + self.timeout,
            slot,
            serial: self.serial,
        });
        self.in_flight += 1;
        let bytes = self.targets.requests[request].bytes.clone();
        let Some((connection, serial)) = &mut self.slots[slot] else {
            return;
        };
        *serial = self.serial;
        let progress = connection.start(bytes, sample, self.begin, &mut self.buffer);
        self.settle(slot, &progress);
    }

    /// Does what an exchange's progress asks for.
    fn settle(&mut self, slot: usize, progress: &Progress) {
        match progress {
            Progress::Waits => {}
            Progress::Gone => {
                for idle in &mut self.idle {
                    idle.retain(|one| *one != slot);
                }
                self.close(slot);
            }
            Progress::Over => {
                self.in_flight -= 1;
                let Some((connection, serial)) = &mut self.slots[slot] else {
                    return;
                };
                *serial = 0;
                let is_kept = connection.is_kept();
                let sample = std::mem::take(&mut connection.sample);
                let idle = &mut self.idle[self.targets.requests[sample.request as usize].address];
                self.finished.push(sample);
                if is_kept && idle.len() < self.keep_alive {
                    idle.push(slot);
                } else {
                    self.close(slot);
                }
            }
        }
    }

    /// Gives up what has taken too long, and says when that is next.
    pub(super) fn expire(&mut self, now: u64) -> Option<u64> {
        while let Some(first) = self.deadlines.front() {
            let (slot, at) = (first.slot, first.at);
            let mine = |one: &&mut (Connection, u64)| one.1 == first.serial;
            match self.slots[slot].as_mut().filter(mine) {
                None => {}
                Some(_) if at > now => return Some(at),
                Some((connection, _)) => {
                    let progress = connection.fail(Fault::Timeout);
                    self.settle(slot, &progress);
                }
            }
            self.deadlines.pop_front();
        }
        None
    }

    /// Gives up all exchanges. They leave no samples.
    pub(super) fn abandon(&mut self) {
        self.in_flight = 0;
        self.slots.clear();
        self.free.clear();
        self.deadlines.clear();
        self.idle.iter_mut().for_each(Vec::clear);
    }

    /// Waits for events until then at the longest, and takes what came.
    pub(super) fn wait(&mut self, until: Option<u64>) -> io::Result<()> {
        let is_over = until.is_some_and(|until| until <= self.now());
        if let Some(until) = until.filter(|_| !is_over) {
            self.alarm.set(self.begin + until)?;
        }
        let nothing = clock::timespec(0);
        let timeout = is_over.then_some(&nothing);
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
        let (events, _) = match epoll::wait(&self.epoll, &mut events, timeout) {
            Ok(events) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in events.iter() {
            match event.data.u64() {
                TIMER => self.alarm.rang(),
                CONTROL => self.is_cancelled = true,
                slot => {
                    let slot = slot as usize;
                    let Some((connection, _)) = self.slots.get_mut(slot).and_then(Option::as_mut)
                    else {
                        continue;
                    };
                    let ended =
                        epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
                    let flags = event.flags;
                    let has_ended = flags.intersects(ended);
                    let progress = connection.advance(has_ended, &mut self.buffer);
                    self.settle(slot, &progress);
                }
            }
        }
        Ok(())
    }
}
