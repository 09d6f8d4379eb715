//! To what the ingress is attached.

use std::os::fd::{AsFd, OwnedFd};

use super::{Attachment, Ingress, Links};
use crate::interfaces::{self, Interface};
use crate::link::{Link, Place};
use crate::programs::{AttachError, Mode, Wanted, attach, attach_xdp, occupied, replace};

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
        let egress = attach(&self.object, "egress", Place::Outgoing(found.index));
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
        &self,
        interface: &Interface,
        wanted: Wanted,
    ) -> Result<(Mode, Option<String>, Link), AttachError> {
        let attach = |mode| attach_xdp(&self.object, "ingress", interface.index, mode);
        let mut not_native = None;
        if wanted != Wanted::Only(Mode::Generic) {
            match attach(Mode::Native) {
                Ok(link) => return Ok((Mode::Native, None, link)),
                Err(reason) => not_native = Some(reason),
            }
        }
        if wanted == Wanted::Only(Mode::Native) {
            let reason = not_native.unwrap_or_default();
            return Err(AttachError::Refused(interface.name.clone(), reason));
        }
        attach(Mode::Generic)
            .map(|link| (Mode::Generic, not_native, link))
            .map_err(|reason| AttachError::Refused(interface.name.clone(), reason))
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
    /// [`AttachError::Refused`].
    pub fn steer(&mut self, namespace: impl AsFd) -> Result<(), AttachError> {
        let place = Place::Connections(namespace.as_fd());
        let link = attach(&self.object, "steer", place)
            .map_err(|reason| AttachError::Refused("the network namespace".to_owned(), reason))?;
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
            let replaced = replace(&self.object, "ingress", &links.xdp);
            let replaced = replaced.and_then(|()| match &links.egress {
                Some(link) => replace(&self.object, "egress", link),
                None => Ok(()),
            });
            replaced.map_err(|reason| {
                AttachError::Refused(links.attachment.interface.name.clone(), reason)
            })?;
            self.links.insert(index, links);
        }
        Ok(())
    }

    /// The links' descriptors: as long as somebody has one open, its program stays attached.
    #[must_use]
    pub fn into_links(self) -> Vec<OwnedFd> {
        let interfaces = self.links.into_values();
        let links = interfaces.flat_map(|links| [Some(links.xdp), links.egress]);
        links
            .chain([self.steering])
            .flatten()
            .map(Link::into_inner)
            .collect()
    }
}
