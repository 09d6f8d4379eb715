//! Transport protocols, as the messages of host process and gateway have them.

use hearth_init::fields::{FieldError, Fields};

/// A transport protocol that functions may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// Its number in an IP header.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }

    /// The one with this number in an IP header.
    #[must_use]
    pub const fn of_number(number: u8) -> Option<Self> {
        match number {
            6 => Some(Self::Tcp),
            17 => Some(Self::Udp),
            _ => None,
        }
    }
}

impl Fields for Protocol {
    fn write(&self, to: &mut Vec<u8>) {
        self.number().write(to);
    }

    fn read(from: &mut &[u8]) -> Result<Self, FieldError> {
        let number = u8::read(from)?;
        Self::of_number(number).ok_or(FieldError::Kind(number))
    }
}
