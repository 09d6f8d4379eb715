//! How noisy the machine was: what stands beside every comparison, so that a reader can tell whether to trust it.

use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::environment::{Environment, Steal};

/// Steps of the yardstick: some tenths of a millisecond.
const STEPS: u32 = 200_000;

/// Runs of the yardstick, of which the fastest counts.
const RUNS: u32 = 5;

/// Writes that are synchronised, and their size: a page of a database.
const WRITES: usize = 32;
const WRITE_BYTES: usize = 4096;

/// Longest time for all of them.
const WRITES_WITHIN: Duration = Duration::from_secs(2);

/// What tells how noisy a machine was while something was compared.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Noise {
    /// The first version beside itself. None where it was not run twice.
    pub control: Option<Control>,
    /// A fixed computation, in ns, right before and right after: how fast the processor was.
    pub yardstick_ns: [f64; 2],
    /// What the kernel takes the time from.
    pub clock_source: Option<String>,
    /// Least time between two readings of the clock, in ns.
    pub clock_step_ns: u64,
    /// Share of all processor time that the hypervisor took meanwhile.
    pub steal_share: Option<f64>,
    /// Of the device that the results are written to. None where it cannot be measured.
    pub fdatasync: Option<Fdatasync>,
}

/// A machine while something is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watched {
    yardstick_ns: f64,
    steal: Option<Steal>,
}

impl Watched {
    /// From now on.
    pub fn begin() -> Self {
        Self {
            yardstick_ns: yardstick(),
            steal: Steal::read(),
        }
    }

    /// Up to now, with the device that the directory is on, if there is one yet.
    pub fn end(self, environment: &Environment, directory: Option<&Path>) -> Noise {
        let stolen = self.steal.zip(Steal::read());
        Noise {
            control: None,
            yardstick_ns: [self.yardstick_ns, yardstick()],
            clock_source: environment.clock_source.clone(),
            clock_step_ns: environment.clock_step_ns,
            steal_share: stolen.and_then(|(before, after)| after.share_since(before)),
            // A device that cannot be measured says nothing.
            fdatasync: directory.and_then(|directory| fdatasync(directory).ok()),
        }
    }
}

/// An A/A experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// Benchmarks with enough trials.
    pub compared: usize,
    /// Those that were found to differ from themselves: with one, there is no verdict.
    pub changes: usize,
}

/// How long it takes to bring 4 KiB to a device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fdatasync {
    /// How often it was measured.
    pub samples: usize,
    /// Median, in ns.
    pub median_ns: f64,
    /// The longest, in ns.
    pub max_ns: f64,
}

/// The time of a fixed computation, in ns: the least of some runs.
pub fn yardstick() -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        let began = Instant::now();
        let mut state = black_box(0x9e37_79b9_7f4a_7c15_u64);
        for _ in 0..STEPS {
            // Each step needs the one before, so that the compiler leaves none out.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        black_box(state);
        least = least.min(began.elapsed().as_nanos() as f64);
    }
    least
}

/// Writes pages to a file in this directory, each followed by `fdatasync`, and removes it.
///
/// # Errors
/// The directory cannot be written to, or its device does not synchronise.
pub fn fdatasync(directory: &Path) -> io::Result<Fdatasync> {
    let path = directory.join(format!(".fdatasync-{:x}", fastrand::u64(..)));
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    let measured = measure(file);
    fs::remove_file(&path)?;
    measured
}

fn measure(mut file: File) -> io::Result<Fdatasync> {
    let page = [0x5a; WRITE_BYTES];
    let began = Instant::now();
    let mut all = Vec::with_capacity(WRITES);
    while all.len() < WRITES && began.elapsed() < WRITES_WITHIN {
        file.seek(SeekFrom::Start(0))?;
        let began = Instant::now();
        file.write_all(&page)?;
        file.sync_data()?;
        all.push(began.elapsed().as_nanos() as f64);
    }
    all.sort_by(f64::total_cmp);
    Ok(Fdatasync {
        samples: all.len(),
        median_ns: all.get(all.len() / 2).copied().unwrap_or(0.0),
        max_ns: all.last().copied().unwrap_or(0.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_yardstick_and_the_device_take_time() {
        assert!(yardstick() > 1_000.0);
        let directory = tempfile::tempdir().expect("a directory");
        let found = fdatasync(directory.path()).expect("measured");
        assert!((1..=WRITES).contains(&found.samples), "{found:?}");
        assert!(found.median_ns > 0.0 && found.median_ns <= found.max_ns);
        assert_eq!(fs::read_dir(directory.path()).expect("read").count(), 0);
        assert!(fdatasync(Path::new("/nowhere")).is_err());
    }
}
