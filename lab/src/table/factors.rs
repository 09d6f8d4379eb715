//! What the table has a row for.

mod plan;

pub use plan::experiment;

/// Samples of a point in the paper.
pub const PAPER_SAMPLES: usize = 3_000;

/// Fewest samples of a point that have a 99th percentile below their largest.
pub const SAMPLES_MIN: usize = 100;

/// One of the table's rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    /// Its name, which is also the sub-experiment's title.
    pub name: &'static str,
    /// What is measured, for a reader.
    pub means: &'static str,
    /// Which rows it is plotted with.
    pub group: &'static str,
    /// Whether requests are to find no instance.
    pub is_cold: bool,
    /// Tail-to-median ratios in the paper, by cloud, as far as they are known.
    pub paper_tmr: &'static [(&'static str, f64)],
    /// Whether it is measured only when asked for: bursts that keep two processors busy for seconds.
    pub is_large: bool,
    function: &'static str,
    memory_mb: u32,
    image_mb: f64,
    /// Functions that take turns in each round: the fewest, where `samples_each` asks for more.
    replicas: usize,
    /// Samples of each function, beyond which there are more functions; 0 for any number.
    samples_each: usize,
    burst: usize,
    /// Functions that call each other.
    chain: usize,
    /// Bytes that the first of them hands on.
    payload: usize,
    /// Whether through the object store.
    storage: bool,
    /// How long the function is busy, in ms.
    busy_ms: u32,
    /// Requests that it handles at a time; 0 is all of a burst.
    limit: usize,
}

/// What most rows have.
const WARM: Factor = Factor {
    name: "warm",
    means: "an instance is idle",
    group: "one request at a time",
    is_cold: false,
    paper_tmr: &[],
    is_large: false,
    function: "hellopy",
    memory_mb: 128,
    image_mb: 0.0,
    replicas: 10,
    samples_each: 0,
    burst: 1,
    chain: 1,
    payload: 0,
    storage: false,
    busy_ms: 0,
    limit: 0,
};

const COLD: Factor = Factor {
    name: "cold",
    means: "no instance is there",
    is_cold: true,
    replicas: 25,
    ..WARM
};

const BURST: Factor = Factor {
    group: "bursts",
    replicas: 1,
    ..WARM
};

const TRANSFER: Factor = Factor {
    group: "inline transfer",
    chain: 2,
    ..WARM
};

const STORAGE: Factor = Factor {
    group: "storage transfer",
    storage: true,
    ..TRANSFER
};

/// A function that is busy for half a second. The paper's is for one, but a request waits 60 s in Hearth's queue at most, and the last of
/// a burst of 100 that one instance handles waits for 99 others.
const POLICY: Factor = Factor {
    group: "scheduling policy",
    replicas: 1,
    busy_ms: 500,
    is_large: true,
    ..WARM
};

/// All of them. MR and TR are relative to the first.
pub static FACTORS: [Factor; 25] = [
    Factor {
        paper_tmr: &[("AWS", 1.7)],
        ..WARM
    },
    Factor {
        paper_tmr: &[("AWS", 1.5)],
        // Four calls each with the first: from the fifth on, three equal gaps between them would be a rhythm.
        replicas: 67,
        samples_each: 3,
        ..COLD
    },
    Factor {
        name: "node-warm",
        means: "Node.js, an instance is idle",
        function: "hellonode",
        ..WARM
    },
    Factor {
        name: "node-cold",
        means: "Node.js, no instance is there",
        function: "hellonode",
        ..COLD
    },
    Factor {
        name: "rust-warm",
        means: "a program that speaks the Runtime API, an instance is idle",
        function: "hellorust",
        ..WARM
    },
    Factor {
        name: "rust-cold",
        means: "a program that speaks the Runtime API, no instance is there",
        function: "hellorust",
        ..COLD
    },
    Factor {
        name: "memory-1024-cold",
        means: "1,024 MB instead of 128, no instance is there",
        group: "memory and image size",
        memory_mb: 1_024,
        ..COLD
    },
    Factor {
        name: "image-10-cold",
        means: "10 MB of random bytes in the archive, no instance is there",
        group: "memory and image size",
        image_mb: 10.0,
        replicas: 10,
        ..COLD
    },
    Factor {
        name: "image-100-cold",
        means: "100 MB of random bytes in the archive, no instance is there",
        group: "memory and image size",
        image_mb: 100.0,
        replicas: 5,
        ..COLD
    },
    Factor {
        name: "burst-100-warm",
        means: "100 requests at once, instances are idle",
        burst: 100,
        ..BURST
    },
    Factor {
        name: "burst-100-cold",
        means: "100 requests at once, no instance is there",
        is_cold: true,
        paper_tmr: &[("AWS", 2.2)],
        burst: 100,
        ..BURST
    },
    Factor {
        name: "burst-300-warm",
        means: "300 requests at once, instances are idle",
        burst: 300,
        is_large: true,
        ..BURST
    },
    Factor {
        name: "burst-300-cold",
        means: "300 requests at once, no instance is there",
        is_cold: true,
        burst: 300,
        is_large: true,
        ..BURST
    },
    Factor {
        name: "burst-500-warm",
        means: "500 requests at once, instances are idle",
        burst: 500,
        is_large: true,
        ..BURST
    },
    Factor {
        name: "burst-500-cold",
        means: "500 requests at once, no instance is there",
        is_cold: true,
        burst: 500,
        is_large: true,
        ..BURST
    },
    Factor {
        name: "inline-1KB",
        means: "a function hands 1 KB on to another",
        payload: 1 << 10,
        ..TRANSFER
    },
    Factor {
        name: "inline-1MB",
        means: "a function hands 1 MB on to another",
        payload: 1 << 20,
        ..TRANSFER
    },
    Factor {
        name: "inline-4MB",
        means: "a function hands 4 MB on to another",
        payload: 4 << 20,
        is_large: true,
        ..TRANSFER
    },
    Factor {
        name: "storage-1KB",
        means: "a function hands 1 KB on through an object store",
        payload: 1 << 10,
        ..STORAGE
    },
    Factor {
        name: "storage-1MB",
        means: "a function hands 1 MB on through an object store",
        payload: 1 << 20,
        ..STORAGE
    },
    Factor {
        name: "storage-4MB",
        means: "a function hands 4 MB on through an object store",
        payload: 4 << 20,
        is_large: true,
        ..STORAGE
    },
    Factor {
        name: "storage-100MB",
        means: "a function with 512 MB of memory hands 100 MB on through an object store",
        payload: 100 << 20,
        memory_mb: 512,
        replicas: 4,
        is_large: true,
        ..STORAGE
    },
    Factor {
        name: "policy-1",
        means: "busy for 0.5 s, one request at a time",
        ..POLICY
    },
    Factor {
        name: "policy-100-queued",
        means: "busy for 0.5 s, 100 requests at once wait for one instance",
        burst: 100,
        limit: 1,
        // 4,595 by 2,978 ms, and 38,545 by 18,637 ms.
        paper_tmr: &[("Google", 1.54), ("Azure", 2.07)],
        ..POLICY
    },
    Factor {
        name: "policy-100-each",
        means: "busy for 0.5 s, 100 requests at once have an instance each",
        burst: 100,
        // 1,865 by 1,598 ms.
        paper_tmr: &[("AWS", 1.17)],
        ..POLICY
    },
];

impl Factor {
    /// Finds one by its name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FACTORS.iter().find(|factor| factor.name == name)
    }

    /// Whether it needs an object store that functions can use.
    pub fn uses_store(&self) -> bool {
        self.storage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_factors_are_an_experiment_of_stellars() {
        let all: Vec<&Factor> = FACTORS.iter().collect();
        let experiment = experiment(&all, 200).expect("good");
        assert!(experiment.sequential);
        for (factor, one) in all.iter().zip(&experiment.sub_experiments) {
            assert_eq!(
                (Factor::named(&one.title), one.title.as_str()),
                (Some(*factor), factor.name)
            );
            let measured = one.bursts - factor.warm_up(200) as usize;
            assert!(measured * factor.burst >= 200, "{}", factor.name);
            // Whole rounds: no replica is asked more often than others.
            assert_eq!(one.bursts % one.parallelism, 0, "{}", factor.name);
        }
        let seconds: f64 = experiment
            .sub_experiments
            .iter()
            .map(crate::stellar::schedule::seconds)
            .sum();
        let minutes = seconds / 60.0;
        assert!((5.0..30.0).contains(&minutes), "{minutes}");
        assert_eq!(Factor::named("lukewarm"), None);
        let cold = Factor::named("cold").expect("a factor");
        for (samples, functions) in [(100, 67), (200, 67), (600, 200), (3_000, 200)] {
            assert_eq!(cold.warm_up(samples), functions);
        }
    }
}
