//! Events to try a function with, offered by the test panel of every function.

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Stable key, used in URLs.
    pub key: &'static str,
    /// What the chooser shows.
    pub label: &'static str,
    /// JSON.
    pub event: &'static str,
}

/// All of them.
pub const SAMPLES: [Sample; 4] = [
    Sample {
        key: "empty",
        label: "Empty object",
        event: "{}",
    },
    Sample {
        key: "http",
        label: "HTTP request, payload 2.0",
        event: include_str!("samples/http.json"),
    },
    Sample {
        key: "scheduled",
        label: "Scheduled event",
        event: include_str!("samples/scheduled.json"),
    },
    Sample {
        key: "list",
        label: "List of records",
        event: include_str!("samples/list.json"),
    },
];

/// The sample with this key.
pub fn by_key(key: &str) -> Option<Sample> {
    SAMPLES.into_iter().find(|sample| sample.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_json_under_a_key_of_their_own() {
        for (index, sample) in SAMPLES.iter().enumerate() {
            serde_json::from_str::<serde_json::Value>(sample.event).expect(sample.key);
            assert!(SAMPLES[..index].iter().all(|other| other.key != sample.key));
            assert_eq!(by_key(sample.key), Some(*sample));
        }
        assert_eq!(by_key("nothing"), None);
    }
}
