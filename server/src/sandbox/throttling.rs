//! How often the kernel held sandboxes back for their quota of processor time.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hearth_host::cgroup::{Version, keyed};

use super::sandbox::Shared;
use super::{Host, Sandbox};
use crate::turns;

/// What the kernel has counted of a sandbox since its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Throttling {
    /// The function that it runs.
    pub function: Arc<str>,
    /// Periods of the quota in which its processes were held back.
    pub periods: u64,
    /// How long, added up over the processors on which they were.
    pub held: Duration,
}

/// Whether anything may have run in a sandbox. What only waits or is frozen is not held back, and there are many more functions than
/// are called at a time.
#[derive(Debug)]
pub(super) struct Activity {
    /// Instances in use, and at first the import.
    live: AtomicUsize,
    /// Whether one was out of use again, or the import over, since this was last looked at.
    ended: AtomicBool,
}

impl Activity {
    /// Of a new sandbox, which is about to import the function's code.
    pub(super) fn importing() -> Self {
        Self {
            live: AtomicUsize::new(1),
            ended: AtomicBool::new(false),
        }
    }

    /// An instance is about to be used.
    pub(super) fn begin(&self) {
        self.live.fetch_add(1, Ordering::Relaxed);
    }

    /// One is out of use, or the import is over.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.live.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether anything was in use since this was last asked.
    fn take(&self) -> bool {
        self.ended.swap(false, Ordering::Relaxed) || self.live.load(Ordering::Relaxed) > 0
    }
}

/// Where a sandbox is counted, and what was last read there.
#[derive(Debug, Clone)]
pub(super) struct Counted {
    function: Arc<str>,
    dir: PathBuf,
    sandbox: Weak<Shared>,
    /// Periods, and how long.
    last: (u64, Duration),
}

impl Counted {
    /// Reads again what may have changed; none when the sandbox is gone.
    fn read(mut self, version: Version) -> Option<Self> {
        let sandbox = self.sandbox.upgrade()?;
        if sandbox.activity.take() {
            self.last = read(version, &self.dir)?;
            turns::give_way();
        }
        Some(self)
    }
}

impl Host {
    /// From now on [`Self::throttling`] tells of this sandbox.
    pub(super) fn watch_throttling(&self, sandbox: &Sandbox, function: Arc<str>) {
        let client = &sandbox.client;
        if let Some(name) = sandbox.cgroup().file_name().and_then(|name| name.to_str()) {
            let counted = Counted {
                function,
                dir: client.cpu_cgroup(name),
                sandbox: Arc::downgrade(&sandbox.shared),
                last: (0, Duration::ZERO),
            };
            client.running.lock().insert(sandbox.key, counted);
        }
    }

    /// Of all sandboxes that were ever held back. Reads a small file of the kernel's for each sandbox in which something may run, some 10 µs: not
    /// for a thread that serves requests.
    #[must_use]
    pub fn throttling(&self) -> Vec<Throttling> {
        let client = self.client();
        let version = client.version();
        // Nobody who starts a sandbox waits for the files.
        let all: Vec<_> = client
            .running
            .lock()
            .iter()
            .map(|(key, counted)| (*key, counted.clone()))
            .collect();
        let read: Vec<_> = all
            .into_iter()
            .map(|(key, counted)| (key, counted.read(version)))
            .collect();
        let mut found = Vec::new();
        let mut running = client.running.lock();
        for (key, counted) in read {
            let Some(Counted { function, last, .. }) = counted else {
                running.remove(&key);
                continue;
            };
            if let Some(place) = running.get_mut(&key) {
                place.last = last;
            }
            let (periods, held) = last;
            if periods > 0 {
                found.push(Throttling {
                    function,
                    periods,
                    held,
                });
            }
        }
        found
    }
}

/// `cpu.stat` of a cgroup; none when it is gone.
fn read(version: Version, dir: &Path) -> Option<(u64, Duration)> {
    let text = fs::read_to_string(dir.join("cpu.stat")).ok()?;
    Some(parse(version, &text))
}

fn parse(version: Version, text: &str) -> (u64, Duration) {
    let held = match version {
        Version::V1 => Duration::from_nanos(keyed(text, "throttled_time")),
        Version::V2 => Duration::from_micros(keyed(text, "throttled_usec")),
    };
    (keyed(text, "nr_throttled"), held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_waits_is_not_active() {
        let activity = Activity::importing();
        assert!(activity.take() && activity.take());
        activity.end();
        // What it did before that is still to be read, once.
        assert!(activity.take());
        assert!(!activity.take());
        activity.begin();
        activity.begin();
        assert!(activity.take() && activity.take());
        activity.end();
        activity.end();
        assert!(activity.take());
        assert!(!activity.take());
    }

    #[test]
    fn a_sandbox_is_read_while_it_imports_and_while_an_instance_is_in_use() {
        let dir = tempfile::tempdir().expect("a directory");
        let says = |periods: u64| {
            let text = format!("nr_throttled {periods}\nthrottled_time 1000\n");
            fs::write(dir.path().join("cpu.stat"), text).expect("a file");
        };
        let sandbox = Arc::new(Shared::default());
        let mut counted = Counted {
            function: "f".into(),
            dir: dir.path().to_owned(),
            sandbox: Arc::downgrade(&sandbox),
            last: (0, Duration::ZERO),
        };
        let mut look = || {
            counted = counted.clone().read(Version::V1)?;
            Some(counted.last.0)
        };
        says(1);
        assert_eq!(look(), Some(1));
        says(2);
        sandbox.activity.end();
        assert_eq!(look(), Some(2));
        says(3);
        assert_eq!(look(), Some(2));
        sandbox.activity.begin();
        assert_eq!(look(), Some(3));
        says(4);
        sandbox.activity.end();
        assert_eq!(look(), Some(4));
        says(5);
        assert_eq!(look(), Some(4));
        drop(sandbox);
        assert_eq!(look(), None);
    }

    #[test]
    fn both_versions_are_read() {
        let v1 = "nr_periods 10\nnr_throttled 4\nthrottled_time 7000000\nwait_sum 3\n";
        assert_eq!(parse(Version::V1, v1), (4, Duration::from_millis(7)));
        let v2 = "usage_usec 1\nnr_periods 10\nnr_throttled 2\nthrottled_usec 1500\n";
        assert_eq!(parse(Version::V2, v2), (2, Duration::from_micros(1500)));
        assert_eq!(parse(Version::V2, ""), (0, Duration::ZERO));
        assert_eq!(read(Version::V1, Path::new("/no/such/place")), None);
    }
}
