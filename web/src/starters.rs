//! Functions to start from, offered by the page that creates one.

/// A small working function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starter {
    /// Stable key, used in URLs.
    pub key: &'static str,
    /// What the chooser shows.
    pub label: &'static str,
    /// `python3` or `node`.
    pub runtime: &'static str,
    /// Source of the one module.
    pub code: &'static str,
}

/// All of them; the first is preselected.
pub const STARTERS: [Starter; 6] = [
    Starter {
        key: "hello",
        label: "Hello: JSON in, JSON out",
        runtime: "python3",
        code: include_str!("starters/hello.py"),
    },
    Starter {
        key: "page",
        label: "Web page: answers a browser at its URL",
        runtime: "python3",
        code: include_str!("starters/page.py"),
    },
    Starter {
        key: "async",
        label: "Async: several waits at once, with a log",
        runtime: "python3",
        code: include_str!("starters/async.py"),
    },
    Starter {
        key: "node-hello",
        label: "Hello: JSON in, JSON out",
        runtime: "node",
        code: include_str!("starters/hello.mjs"),
    },
    Starter {
        key: "node-page",
        label: "Web page: answers a browser at its URL",
        runtime: "node",
        code: include_str!("starters/page.mjs"),
    },
    Starter {
        key: "node-async",
        label: "Async: several waits at once, with a log",
        runtime: "node",
        code: include_str!("starters/async.mjs"),
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
            let handler = match starter.runtime {
                "python3" => "def handler(event, context):",
                _ => "export const handler = async (event, context) =>",
            };
            assert!(starter.code.contains(handler), "{}", starter.key);
        }
    }
}
