//! How instances of a function start: the setting, what the import left running, and what follows from both.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::StartKind;

/// How a function's instances should start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// Fork; restore or boot if the import left threads running, which a fork would lose.
    #[default]
    Auto,
    /// Fork the template, even if it has other threads.
    Fork,
    /// From the template's image, with its threads, each in its own sandbox; by a boot if there is no image.
    Restore,
    /// Boot, each instance in its own sandbox.
    Boot,
}

impl Start {
    /// As in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Fork => "fork",
            Self::Restore => "restore",
            Self::Boot => "boot",
        }
    }

    /// Parses its name in the API.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Auto, Self::Fork, Self::Restore, Self::Boot]
            .into_iter()
            .find(|start| start.as_str() == name)
    }
}

/// Names of threads that are kept, and bytes of each: what a worker says of them is the function's doing.
const NAMES_MAX: usize = 8;
const NAME_BYTES: usize = 40;

/// Threads that a version's import has left running, as its template counted them, without those that are there again in a
/// fork.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Threads {
    /// How many.
    pub count: u32,
    /// What the first few are called.
    #[serde(default)]
    pub names: Vec<String>,
}

impl Threads {
    /// The same within bounds, and fit to be shown.
    pub fn cleaned(self) -> Self {
        let clean = |name: String| -> String {
            let printable = name.chars().filter(|c| !c.is_control());
            printable.take(NAME_BYTES).collect()
        };
        let mut names: Vec<String> = Vec::new();
        for name in self.names.into_iter().take(NAMES_MAX).map(clean) {
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
        Self { names, ..self }
    }

    /// "2 threads running (worker_0, worker_1)".
    fn in_words(&self) -> String {
        let threads = if self.count == 1 { "thread" } else { "threads" };
        let names = match self.names.as_slice() {
            [] => String::new(),
            names => format!(" ({})", names.join(", ")),
        };
        format!("{} {threads} running{names}", self.count)
    }
}

/// How instances start, and why where it is not by a fork as usual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartChoice {
    /// `fork`, `restore` or `boot`.
    pub by: StartKind,
    /// One sentence, or nothing when there is nothing to say.
    pub reason: Option<String>,
}

/// Decides how instances start. `threads` are `None` until the import was seen once; `fork` and `restore` say why this host can
/// do neither.
pub fn choose_start(
    asked: Start,
    threads: Option<&Threads>,
    fork: Result<(), &str>,
    restore: Result<(), &str>,
) -> StartChoice {
    let left = threads.filter(|threads| threads.count > 0);
    if let Err(why) = fork {
        return StartChoice {
            by: StartKind::Boot,
            reason: Some(format!("the interpreter cannot be forked here: {why}")),
        };
    }
    match (asked, left) {
        (Start::Auto | Start::Fork, None) => StartChoice {
            by: StartKind::Fork,
            reason: None,
        },
        (Start::Fork, Some(left)) => StartChoice {
            by: StartKind::Fork,
            reason: Some(format!(
                "warning: the import left {}, which a fork would not have; a request that waits for one of them \
                 hangs. \"start\" is \"fork\"; \"auto\" would not fork",
                left.in_words()
            )),
        },
        (Start::Boot, _) => StartChoice {
            by: StartKind::Boot,
            reason: None,
        },
        (Start::Auto | Start::Restore, left) => {
            let threads = left.filter(|_| asked == Start::Auto).map(|left| {
                format!(
                    "the import left {}, which a fork would not have",
                    left.in_words()
                )
            });
            let (by, no_image) = match restore {
                Ok(()) => (StartKind::Restore, None),
                Err(why) => (
                    StartKind::Boot,
                    Some(format!("restore is not available: {why}")),
                ),
            };
            let reasons: Vec<String> = threads.into_iter().chain(no_image).collect();
            StartChoice {
                by,
                reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
            }
        }
    }
}

/// The same of a runtime whose instances always boot, and why they do.
pub fn choose_boot(asked: Start, why: &str) -> StartChoice {
    StartChoice {
        by: StartKind::Boot,
        reason: (asked != Start::Boot).then(|| why.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(count: u32, names: &[&str]) -> Threads {
        Threads {
            count,
            names: names.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn threads_decide_what_auto_does() {
        let choose = |threads: Option<&Threads>, restore| {
            choose_start(Start::Auto, threads, Ok(()), restore)
        };
        let none = choose(Some(&threads(0, &[])), Ok(()));
        assert_eq!((none.by, none.reason), (StartKind::Fork, None));
        let some = threads(2, &["worker_0", "worker_1"]);
        let restored = choose(Some(&some), Ok(()));
        assert_eq!(restored.by, StartKind::Restore);
        assert_eq!(
            restored.reason.as_deref(),
            Some(
                "the import left 2 threads running (worker_0, worker_1), which a fork would not have"
            )
        );
        let booted = choose(Some(&threads(1, &[])), Err("there is no CRIU"));
        assert_eq!(booted.by, StartKind::Boot);
        assert_eq!(
            booted.reason.as_deref(),
            Some(
                "the import left 1 thread running, which a fork would not have; restore is not available: \
                 there is no CRIU"
            )
        );
    }

    #[test]
    fn what_was_asked_for_is_done() {
        let some = threads(1, &["x"]);
        let choose = |asked, threads| choose_start(asked, threads, Ok(()), Ok(()));
        let forced = choose(Start::Fork, Some(&some));
        assert_eq!(forced.by, StartKind::Fork);
        assert!(
            forced
                .reason
                .is_some_and(|reason| reason.starts_with("warning: "))
        );
        for (asked, by) in [
            (Start::Restore, StartKind::Restore),
            (Start::Boot, StartKind::Boot),
        ] {
            for threads in [None, Some(&some)] {
                let choice = choose(asked, threads);
                assert_eq!((choice.by, choice.reason), (by, None));
            }
        }
        let nowhere = choose_start(Start::Fork, None, Err("HEARTH_NODE_FORK=off"), Ok(()));
        assert_eq!(nowhere.by, StartKind::Boot);
        assert!(nowhere.reason.is_some());
    }

    #[test]
    fn what_always_boots_says_why_unless_it_was_asked_to() {
        for asked in [Start::Auto, Start::Fork, Start::Restore] {
            let choice = choose_boot(asked, "a process");
            assert_eq!(choice.by, StartKind::Boot);
            assert_eq!(choice.reason.as_deref(), Some("a process"));
        }
        let asked = choose_boot(Start::Boot, "a process");
        assert_eq!((asked.by, asked.reason), (StartKind::Boot, None));
    }

    #[test]
    fn what_a_worker_says_of_threads_is_bounded() {
        let long = "x".repeat(1000);
        let said = Threads {
            count: 1_000_000,
            names: std::iter::once("a\u{1b}[2Jb".to_owned())
                .chain(std::iter::repeat_n(long, 100))
                .collect(),
        };
        let cleaned = said.cleaned();
        assert_eq!(cleaned.names, ["a[2Jb".to_owned(), "x".repeat(NAME_BYTES)]);
    }

    #[test]
    fn names_are_the_apis() {
        for start in [Start::Auto, Start::Fork, Start::Restore, Start::Boot] {
            assert_eq!(Start::named(start.as_str()), Some(start));
            assert_eq!(serde_json::json!(start), start.as_str());
        }
        assert_eq!(Start::named("warm"), None);
    }
}
