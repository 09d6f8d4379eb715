//! Functions to start from, offered by the page that creates one.

/// A small working function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starter {
    /// Stable key, used in URLs.
    pub key: &'static str,
    /// What the chooser shows.
    pub label: &'static str,
    /// Source of `main.py`.
    pub code: &'static str,
}

/// All of them; the first is preselected.
pub const STARTERS: [Starter; 3] = [
    Starter {
        key: "hello",
        label: "Hello: JSON in, JSON out",
        code: include_str!("starters/hello.py"),
    },
    Starter {
        key: "page",
        label: "Web page: answers a browser at its URL",
        code: include_str!("starters/page.py"),
    },
    Starter {
        key: "async",
        label: "Async: several waits at once, with a log",
        code: include_str!("starters/async.py"),
    },
];

/// The starter with this key, or the first.
pub fn by_key(key: &str) -> Starter {
    STARTERS
        .into_iter()
        .find(|starter| starter.key == key)
        .unwrap_or(STARTERS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_give_the_first() {
        assert_eq!(by_key("async").key, "async");
        assert_eq!(by_key("../etc").key, STARTERS[0].key);
    }

    #[test]
    fn every_starter_has_the_default_handler() {
        for starter in STARTERS {
            assert!(starter.code.contains("def handler(event, context):"));
        }
    }
}
