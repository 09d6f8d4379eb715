//! What becomes of a result: it goes to the next member of the route, to the caller, or to the gateway.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hearth_abi::monotonic_ns;
use hearth_chain::{Descriptor, Instance, Kind, Member, Note, SendError, Stay};

use super::{CallError, ChainMember, Content, Current, MemberError};

/// Longest wait for news while a member has no instance to send to.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What an error says whose text does not fit into a block.
const TOO_LONG: &[u8] = br#"{"errorType":"Runtime.ErrorTooLarge","errorMessage":"the error does not fit into its block of the chain's pool","stackTrace":[]}"#;

/// Where a result goes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target {
    /// To the instance that called.
    Caller(Instance),
    /// To an instance of the member at this position of the route, or to the gateway.
    Next { member: Member, hop: u8 },
}

impl ChainMember {
    /// Passes a result on: to the next member of the route, or to the caller.
    ///
    /// # Errors
    /// The gateway is gone, or the system's.
    pub fn pass(&mut self, control: &OwnedFd, payload: Content<'_>) -> Result<(), MemberError> {
        if let Err(error) = self.make_room(control, payload) {
            return self.fail_for_room(error);
        }
        let Some(current) = self.current else {
            return Ok(());
        };
        let target = match self.target(&current) {
            Ok(target) => target,
            Err(reason) => return self.fail(reason),
        };
        self.hand_over(control, current, target, payload)
    }

    /// Ends the request with an error, JSON text.
    ///
    /// # Errors
    /// The gateway is gone, or the system's.
    pub fn fail(&mut self, error: &[u8]) -> Result<(), MemberError> {
        let Some(current) = self.current.take() else {
            return Ok(());
        };
        self.leave(&current);
        self.give_up(&current, error)
    }

    /// Passes an error on in place of a result.
    fn give_up(&mut self, current: &Current, error: &[u8]) -> Result<(), MemberError> {
        self.current = None;
        let limit = self.pool.room(current.descriptor.block) as usize;
        let error = if error.len() > limit { TOO_LONG } else { error };
        // A caller that is gone has no use for it; then it is the gateway's.
        let to = match current.descriptor.kind {
            Kind::Call => current.from,
            _ => Instance::GATEWAY,
        };
        let error = Content::Bytes(error);
        let sent = self.send(current, to, Kind::Failure, current.descriptor.hop, error);
        match to {
            Instance::GATEWAY => Ok(sent?),
            _ => self.given_back(current, sent),
        }
    }

    /// A caller that is gone waits for nothing: its block is the gateway's.
    fn given_back(
        &mut self,
        current: &Current,
        replied: Result<(), SendError>,
    ) -> Result<(), MemberError> {
        if replied.is_err() {
            let hop = current.descriptor.hop;
            let nothing = Content::InPlace(0);
            self.send(current, Instance::GATEWAY, Kind::Return, hop, nothing)?;
        }
        Ok(())
    }

    /// Answers now: the request ends with this result, wherever on the route it is; a caller gets it as the reply. What
    /// the handler returns later goes nowhere.
    ///
    /// # Errors
    /// [`CallError`]; the request goes on.
    pub fn respond(&mut self, control: &OwnedFd, payload: Content<'_>) -> Result<(), CallError> {
        self.make_room(control, payload)?;
        let current = self.current.ok_or(CallError::NoRequest)?;
        self.leave(&current);
        self.current = None;
        let hop = current.descriptor.hop;
        if current.descriptor.kind == Kind::Call {
            let replied = self.send(&current, current.from, Kind::Reply, hop, payload);
            return Ok(self.given_back(&current, replied)?);
        }
        let sent = self.send(&current, Instance::GATEWAY, Kind::End, hop, payload);
        Ok(sent.map_err(MemberError::from)?)
    }

    /// Passes the request on now, to the next place of a member on the route, whatever lies between. What the handler returns
    /// later goes nowhere.
    ///
    /// # Errors
    /// [`CallError`]; the request goes on.
    pub fn send_ahead(
        &mut self,
        control: &OwnedFd,
        name: &str,
        payload: Content<'_>,
    ) -> Result<(), CallError> {
        let target = self.place_ahead(name, payload)?;
        self.make_room(control, payload)?;
        let current = self.current.ok_or(CallError::NoRequest)?;
        Ok(self.hand_over(control, current, target, payload)?)
    }

    /// Where [`Self::send_ahead`] would pass this on.
    pub(super) fn place_ahead(
        &self,
        name: &str,
        payload: Content<'_>,
    ) -> Result<Target, CallError> {
        let current = self.current.ok_or(CallError::NoRequest)?;
        let member = self.named(name)?;
        Self::check_size(payload.len(), self.limit(&current, payload))?;
        let Descriptor {
            table,
            route,
            hop,
            kind,
            ..
        } = current.descriptor;
        let not_allowed = || CallError::NotAllowed(name.to_owned());
        if kind == Kind::Call
            || self.routes.allows(table, self.member, member, Kind::Pass) != Ok(true)
        {
            return Err(not_allowed());
        }
        let mut places = (hop..u8::MAX).map(|before| before + 1);
        let hop = places
            .find(|&place| self.routes.hop(table, route, place) == Ok(Some(member)))
            .ok_or_else(not_allowed)?;
        Ok(Target::Next { member, hop })
    }

    fn target(&self, current: &Current) -> Result<Target, &'static [u8]> {
        if current.descriptor.kind == Kind::Call {
            return Ok(Target::Caller(current.from));
        }
        let route = current.descriptor.route;
        // The last of 256 hops is the gateway's in any case.
        let Some(hop) = current.descriptor.hop.checked_add(1) else {
            let hop = current.descriptor.hop;
            return Ok(Target::Next {
                member: Member::GATEWAY,
                hop,
            });
        };
        match self.routes.hop(current.descriptor.table, route, hop) {
            Ok(next) => Ok(Target::Next {
                member: next.unwrap_or(Member::GATEWAY),
                hop,
            }),
            Err(_) => Err(
                br#"{"errorType":"Chain.Retired","errorMessage":"the route has been taken down","stackTrace":[]}"#,
            ),
        }
    }

    fn hand_over(
        &mut self,
        control: &OwnedFd,
        current: Current,
        target: Target,
        payload: Content<'_>,
    ) -> Result<(), MemberError> {
        self.leave(&current);
        let (member, hop) = match target {
            Target::Caller(caller) => {
                let hop = current.descriptor.hop;
                self.current = None;
                let replied = self.send(&current, caller, Kind::Reply, hop, payload);
                return self.given_back(&current, replied);
            }
            Target::Next { member, hop } => (member, hop),
        };
        loop {
            match self.peers.choose(member, &mut self.chooser) {
                Some(to) => match self.send(&current, to, Kind::Pass, hop, payload) {
                    Ok(()) => {
                        self.current = None;
                        return Ok(());
                    }
                    Err(error) if member == Member::GATEWAY => return Err(error.into()),
                    Err(SendError::Full(_)) => return self.give_up(
                        &current,
                        br#"{"errorType":"Chain.Overloaded","errorMessage":"the next member has too many requests waiting","stackTrace":[]}"#,
                    ),
                    Err(_) => self.peers.forget(to),
                },
                // One that has ended is being replaced.
                None if Instant::now() < current.deadline() => {
                    let until = current.deadline().min(Instant::now() + LOOK_AGAIN);
                    match self.peers.recv(until) {
                        Ok(arrival) => self.keep(arrival),
                        Err(error) if self.goes_on_after(&error, control)? => {}
                        Err(_) => return Ok(()),
                    }
                }
                None => {
                    return self.give_up(
                        &current,
                        br#"{"errorType":"Chain.NoInstance","errorMessage":"the next member has no instance","stackTrace":[]}"#,
                    );
                }
            }
        }
    }

    /// Notes how long the request was here.
    fn leave(&mut self, current: &Current) {
        let took_ns = monotonic_ns().saturating_sub(current.entered_ns);
        self.pool.note_stay(
            current.descriptor.block,
            Stay {
                instance: self.me,
                hop: current.descriptor.hop,
                is_call: current.descriptor.kind == Kind::Call,
                entered_ns: current.entered_ns,
                took_ns,
            },
        );
        self.board.report_current(0);
    }

    /// Puts the payload into the request's block and sends it. A request that was given up meanwhile is let go.
    fn send(
        &mut self,
        current: &Current,
        to: Instance,
        kind: Kind,
        hop: u8,
        payload: Content<'_>,
    ) -> Result<(), SendError> {
        let mut descriptor = current.descriptor;
        let Ok(mut block) = self.pool.check(&descriptor, current.from) else {
            return Ok(());
        };
        // Its length was compared with the block's before.
        let Ok(len) = payload.put(&mut block) else {
            return Ok(());
        };
        descriptor.len = len;
        descriptor.target = to;
        descriptor.kind = kind;
        descriptor.hop = hop;
        let note = Note {
            holder: to,
            epoch: 0,
            hop,
        };
        self.pool.note(descriptor.block, note);
        self.peers.send(&descriptor)
    }
}
