//! How often the kernel held sandboxes back for their quota of processor time.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hearth_host::cgroup::{Version, keyed};

use super::{Host, Sandbox};

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

impl Host {
    /// From now on [`Self::throttling`] tells of this sandbox.
    pub(super) fn watch_throttling(&self, sandbox: &Sandbox, function: Arc<str>) {
        let client = &sandbox.client;
        if let Some(name) = sandbox.cgroup().file_name().and_then(|name| name.to_str()) {
            let place = (function, client.cpu_cgroup(name));
            client.running.lock().insert(sandbox.key, place);
        }
    }

    /// Of all sandboxes that were ever held back. Reads a small file of the kernel's for each sandbox, some 5 µs: not
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
            .map(|(key, place)| (*key, place.clone()))
            .collect();
        let (mut found, mut gone) = (Vec::new(), Vec::new());
        for (key, (function, dir)) in all {
            match read(version, &dir) {
                Some((0, _)) => {}
                Some((periods, held)) => found.push(Throttling {
                    function,
                    periods,
                    held,
                }),
                None => gone.push(key),
            }
        }
        // A sandbox that is gone has no file any more.
        let mut running = client.running.lock();
        for key in gone {
            running.remove(&key);
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
    fn both_versions_are_read() {
        let v1 = "nr_periods 10\nnr_throttled 4\nthrottled_time 7000000\nwait_sum 3\n";
        assert_eq!(parse(Version::V1, v1), (4, Duration::from_millis(7)));
        let v2 = "usage_usec 1\nnr_periods 10\nnr_throttled 2\nthrottled_usec 1500\n";
        assert_eq!(parse(Version::V2, v2), (2, Duration::from_micros(1500)));
        assert_eq!(parse(Version::V2, ""), (0, Duration::ZERO));
        assert_eq!(read(Version::V1, Path::new("/no/such/place")), None);
    }
}
