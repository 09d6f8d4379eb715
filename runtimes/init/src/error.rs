//! What can go wrong in the jail, step by step.

use std::io;

use hearth_init::{MAX_REPORT, Report};

/// Longest detail of a report, in bytes: more than anyone reads, and little enough that it fits the messages that carry it.
const MAX_DETAIL: usize = MAX_REPORT / 8;

/// A step of the jail that failed. Nothing of the sandbox is left running after one.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    /// The host process's first datagram is not what it should be.
    #[error("reading the specification: {0}")]
    Spec(String),
    /// Joining the sandbox's cgroup.
    #[error("joining {path}: {source}")]
    Cgroup {
        /// The `cgroup.procs` file.
        path: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Making or mounting a part of the root.
    #[error("{what}: {source}")]
    Mount {
        /// What was mounted or made, and where.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Entering the namespaces.
    #[error("new user, mount, pid, ipc, uts, net and cgroup namespaces: {0}")]
    Namespaces(io::Error),
    /// Preparing the network namespace.
    #[error("{what}: {source}")]
    Network {
        /// What was set.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Mapping the two users.
    #[error("{what}: {source}")]
    IdMap {
        /// `uid_map`, `gid_map`, `setgroups` or the change of user.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Giving up privileges: capabilities, `no_new_privs`, keyring, session, signals.
    #[error("{what}: {source}")]
    Privileges {
        /// What was given up.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A resource limit.
    #[error("setting the limit {what}: {source}")]
    Limit {
        /// Its name.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Landlock.
    #[error("{0}")]
    Landlock(String),
    /// The system call filter.
    #[error("{0}")]
    Seccomp(String),
    /// Starting the template's program.
    #[error("starting {program}: {source}")]
    Exec {
        /// Its path inside.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Restoring the template from its image.
    #[error("{0}")]
    Restore(String),
    /// Talking to the host process.
    #[error("talking to the host process: {0}")]
    Control(io::Error),
    /// The template's side failed and said how.
    #[error("{detail}")]
    Template {
        /// The step that failed there.
        step: String,
        /// What it said.
        detail: String,
    },
}

impl JailError {
    /// The step's stable name.
    pub fn step(&self) -> &str {
        match self {
            Self::Spec(_) => "specification",
            Self::Cgroup { .. } => "cgroup",
            Self::Mount { .. } => "mount",
            Self::Namespaces(_) => "namespaces",
            Self::Network { .. } => "network",
            Self::IdMap { .. } => "id_map",
            Self::Privileges { .. } => "privileges",
            Self::Limit { .. } => "limits",
            Self::Landlock(_) => "landlock",
            Self::Seccomp(_) => "seccomp",
            Self::Exec { .. } => "exec",
            Self::Restore(_) => "restore",
            Self::Control(_) => "control",
            Self::Template { step, .. } => step,
        }
    }

    /// The report for the host process, cut to [`MAX_REPORT`].
    pub fn report(&self) -> Report {
        let mut detail = self.to_string();
        // The rest holds the step and the lengths; a detail this long is already more than anyone reads.
        detail.truncate(detail.floor_char_boundary(MAX_DETAIL));
        Report::Failed {
            step: self.step().to_owned(),
            detail,
        }
    }

    /// For `map_err`: a failed mount with what was tried.
    pub fn mount<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |source| Self::Mount {
            what: what.into(),
            source: source.into(),
        }
    }

    /// For `map_err`: something of the network that could not be set.
    pub fn network<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::Network {
            what,
            source: source.into(),
        }
    }

    /// For `map_err`: a step of a restore.
    pub fn restore(source: io::Error) -> Self {
        Self::Restore(source.to_string())
    }

    /// For `map_err`: a privilege that could not be given up.
    pub fn privileges<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::Privileges {
            what,
            source: source.into(),
        }
    }

    /// For `map_err`: a user that could not be mapped.
    pub fn id_map<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::IdMap {
            what,
            source: source.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use hearth_init::fields::Fields as _;

    use super::*;

    #[test]
    fn a_report_fits_one_datagram_whatever_its_detail() {
        // Characters that a cut may go through.
        for (filler, offset) in [
            ("\u{1}", ""),
            ("\u{20ac}", ""),
            ("\u{20ac}", "a"),
            ("\u{20ac}", "aa"),
        ] {
            let detail = offset.to_owned() + &filler.repeat(MAX_REPORT);
            let report = JailError::Restore(detail.clone()).report();
            assert!(report.to_bytes().len() <= MAX_REPORT);
            let Report::Failed { step, detail: cut } = report else {
                panic!("{report:?}");
            };
            assert_eq!(step, "restore");
            assert!(!cut.is_empty() && detail.starts_with(&cut));
        }
    }

    #[test]
    fn what_failed_in_the_template_keeps_its_step() {
        let error = JailError::Template {
            step: "exec".to_owned(),
            detail: "not found".to_owned(),
        };
        let Report::Failed { step, detail } = error.report() else {
            panic!("not a failure");
        };
        assert_eq!((step.as_str(), detail.as_str()), ("exec", "not found"));
    }
}
