//! Traffic and refusals by destination, for metrics: a function chooses its destinations, so that only the first few have a
//! label of their own.

use std::collections::HashMap;
use std::sync::Arc;

/// Destinations of a function with a label. Protects whoever scrapes: each is several time series, for good.
const LABELS_MAX: usize = 32;
/// The label of all others.
const OTHERS: &str = "other";

/// What is counted of one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Labelled {
    /// Connections, and UDP exchanges, that have begun.
    pub connections: u64,
    /// Bytes from the function, by connections that have ended.
    pub bytes_out: u64,
    /// Bytes to the function, by connections that have ended.
    pub bytes_in: u64,
    /// Refused packets and names that were reported.
    pub refused: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Labels(HashMap<Arc<str>, Labelled>);

impl Labels {
    /// A connection to a name or an address has begun, or is over.
    pub(super) fn connection(&mut self, place: &str, port: u16, bytes: Option<(u64, u64)>) {
        let label = self.of(place, Some(port));
        match bytes {
            None => label.connections += 1,
            Some((out, back)) => {
                label.bytes_out += out;
                label.bytes_in += back;
            }
        }
    }

    /// A packet to it, or a name, was refused.
    pub(super) fn refused(&mut self, place: &str, port: Option<u16>) {
        self.of(place, port).refused += 1;
    }

    /// All of them, in their order.
    pub(super) fn all(&self) -> Vec<(Arc<str>, Labelled)> {
        let mut all: Vec<_> = self
            .0
            .iter()
            .map(|(label, of)| (label.clone(), *of))
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    fn of(&mut self, place: &str, port: Option<u16>) -> &mut Labelled {
        let label = match port {
            Some(port) if place.contains(':') => format!("[{place}]:{port}"),
            Some(port) => format!("{place}:{port}"),
            None => place.to_owned(),
        };
        let is_known = self.0.contains_key(label.as_str());
        let label = match is_known || self.0.len() < LABELS_MAX {
            true => label.into(),
            false => OTHERS.into(),
        };
        self.0.entry(label).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_have_labels_and_the_others_share_one() {
        let mut labels = Labels::default();
        labels.connection("2001:db8::1", 443, None);
        labels.connection("2001:db8::1", 443, Some((3, 4)));
        for number in 0..100 {
            labels.refused(&format!("n{number}.example"), None);
        }
        let all = labels.all();
        assert_eq!(all.len(), LABELS_MAX + 1);
        let of = |wanted: &str| {
            all.iter()
                .find(|(label, _)| &**label == wanted)
                .map(|(_, of)| *of)
        };
        let first = Labelled {
            connections: 1,
            bytes_out: 3,
            bytes_in: 4,
            refused: 0,
        };
        assert_eq!(of("[2001:db8::1]:443"), Some(first));
        assert_eq!(
            of(OTHERS).map(|of| of.refused),
            Some(100 - LABELS_MAX as u64 + 1)
        );
    }
}
