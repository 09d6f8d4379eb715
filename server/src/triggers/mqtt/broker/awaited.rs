//! Answers that a broker owes, each due at its time, whatever else it sends.

use std::time::Duration;

use mqtt_proto::Pid;
use tokio::time::Instant;

/// What is awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Suback(Pid),
    Unsuback(Pid),
    Pingresp,
}

impl Answer {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Suback(_) => "SUBACK",
            Self::Unsuback(_) => "UNSUBACK",
            Self::Pingresp => "PINGRESP",
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Awaited(Vec<(Answer, Instant)>);

impl Awaited {
    /// From here on this is awaited for so long.
    pub(super) fn add(&mut self, answer: Answer, within: Duration) {
        self.0.push((answer, Instant::now() + within));
    }

    /// Whether a sign of life is awaited.
    pub(super) fn has(&self, answer: Answer) -> bool {
        self.0.iter().any(|(other, _)| *other == answer)
    }

    /// It came; false if nobody awaits it.
    pub(super) fn came(&mut self, answer: Answer) -> bool {
        let before = self.0.len();
        self.0.retain(|(other, _)| *other != answer);
        self.0.len() < before
    }

    /// The one that is due first.
    pub(super) fn first(&self) -> Option<(Answer, Instant)> {
        self.0.iter().min_by_key(|(_, due)| *due).copied()
    }

    /// Nothing was read for so long, by the server's choice.
    pub(super) fn put_off(&mut self, by: Duration) {
        for (_, due) in &mut self.0 {
            *due += by;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_due_and_can_be_put_off() {
        let mut all = Awaited::default();
        assert_eq!(all.first(), None);
        let id = Pid::try_from(7).expect("an id");
        all.add(Answer::Pingresp, Duration::from_secs(9));
        all.add(Answer::Suback(id), Duration::from_secs(5));
        let (answer, due) = all.first().expect("one");
        assert_eq!(answer, Answer::Suback(id));
        all.put_off(Duration::from_secs(2));
        assert_eq!(all.first(), Some((answer, due + Duration::from_secs(2))));
        assert!(!all.came(Answer::Unsuback(id)) && all.came(answer));
        assert!(all.has(Answer::Pingresp) && !all.has(answer));
    }
}
