//! To what the ingress is attached.

use std::os::fd::AsFd;

use aya::programs::links::LinkOrder;
use aya::programs::tc::{SchedClassifierLink, TcAttachOptions};
use aya::programs::xdp::{XdpLink, XdpMode};
use aya::programs::{ProgramError, SchedClassifier, SkLookup, TcAttachType, Xdp};

use super::{Attachment, Ingress, Links};
use crate::interfaces::{self, Interface};
use crate::programs::{AttachError, Mode, Wanted, attach_by_link, occupied, program, told};

impl Ingress {
    /// Attaches to an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// [`AttachError`]; nothing is attached then.
    pub fn attach(&mut self, interface: &str, wanted: Wanted) -> Result<&Attachment, AttachError> {
        let all = interfaces::list()?;
        let Some(found) = all.iter().find(|one| one.name == interface) else {
            return Err(AttachError::Unknown(interface.to_owned()));
        };
        if let Some(id) = found.xdp.first() {
            return Err(occupied(interface, *id));
        }
        let attached = self.links.values().map(|links| &links.attachment.interface);
        if let Some(other) = attached
            .into_iter()
            .find(|other| found.shares_packets_with(other))
        {
            return Err(AttachError::Overlaps {
                interface: interface.to_owned(),
                other: other.name.clone(),
            });
        }
        let (mode, not_native, xdp) = self.attach_xdp(found, wanted)?;
        let egress = self.attach_egress(interface);
        let attachment = Attachment {
            interface: found.clone(),
            mode,
            not_native,
            not_counting_sent: egress.as_ref().err().cloned(),
        };
        let links = Links {
            attachment,
            xdp,
            egress: egress.ok(),
        };
        let links = self.links.entry(found.index).insert_entry(links).into_mut();
        Ok(&links.attachment)
    }

    fn attach_xdp(
        &mut self,
        interface: &Interface,
        wanted: Wanted,
    ) -> Result<(Mode, Option<String>, XdpLink), AttachError> {
        let program = program::<Xdp>(&mut self.object, "ingress");
        let mut not_native = None;
        if wanted != Wanted::Only(Mode::Generic) {
            match attach_by_link(program, interface.index, XdpMode::Driver) {
                Ok(link) => return Ok((Mode::Native, None, link)),
                Err(reason) => not_native = Some(reason),
            }
        }
        if wanted == Wanted::Only(Mode::Native) {
            let reason = not_native.unwrap_or_default();
            return Err(AttachError::Refused(interface.name.clone(), reason));
        }
        attach_by_link(program, interface.index, XdpMode::Skb)
            .map(|link| (Mode::Generic, not_native, link))
            .map_err(|reason| AttachError::Refused(interface.name.clone(), reason))
    }

    fn attach_egress(&mut self, interface: &str) -> Result<SchedClassifierLink, String> {
        let program = program::<SchedClassifier>(&mut self.object, "egress");
        let options = TcAttachOptions::TcxOrder(LinkOrder::default());
        program
            .attach_with_options(interface, TcAttachType::Egress, options)
            .and_then(|link| program.take_link(link))
            .map_err(|error| told(&error))
    }

    /// Detaches from an interface. Says whether it was attached.
    pub fn detach(&mut self, interface: &str) -> bool {
        let before = self.links.len();
        self.links
            .retain(|_, links| links.attachment.interface.name != interface);
        self.links.len() < before
    }

    /// What the ingress is attached to.
    pub fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        self.links.values().map(|links| &links.attachment)
    }

    /// Steers connections in a network namespace. The programs of others there are asked, too.
    ///
    /// # Errors
    /// [`AttachError::Refused`], [`AttachError::NotLoaded`].
    pub fn steer(&mut self, namespace: impl AsFd) -> Result<(), AttachError> {
        let program = program::<SkLookup>(&mut self.object, "steer");
        let link = match program.attach(namespace) {
            Ok(id) => program.take_link(id),
            Err(ProgramError::NotLoaded) => return Err(AttachError::NotLoaded("steer")),
            Err(error) => Err(error),
        };
        let link = link.map_err(|error| {
            AttachError::Refused("the network namespace".to_owned(), told(&error))
        })?;
        self.steering = Some(link);
        Ok(())
    }

    /// Puts this ingress in the place of another on its interfaces, without a packet in between that meets neither. The
    /// maps are this one's: fill them before.
    ///
    /// # Errors
    /// [`AttachError::Refused`]: the interface is detached then.
    pub fn take_over(&mut self, mut other: Self) -> Result<(), AttachError> {
        for (index, links) in std::mem::take(&mut other.links) {
            let name = links.attachment.interface.name.clone();
            let refused = |error: ProgramError| AttachError::Refused(name.clone(), told(&error));
            let ingress = program::<Xdp>(&mut self.object, "ingress");
            let id = ingress.attach_to_link(links.xdp).map_err(refused)?;
            let xdp = ingress.take_link(id).map_err(refused)?;
            let egress = match links.egress {
                None => None,
                Some(link) => {
                    let egress = program::<SchedClassifier>(&mut self.object, "egress");
                    let id = egress.attach_to_link(link).map_err(refused)?;
                    Some(egress.take_link(id).map_err(refused)?)
                }
            };
            self.links.insert(
                index,
                Links {
                    attachment: links.attachment,
                    xdp,
                    egress,
                },
            );
        }
        Ok(())
    }
}
