//! What is counted, and of whom: `bpf/audit.bpf.c` in Rust.

/// Processes on a request's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Part {
    /// The server with all that it has started beside functions.
    Server = 1,
    /// The functions' instances.
    Members = 2,
}

/// Whoever is not on the path is counted, too, as part 0.
const PARTS: usize = 3;

/// What is counted: first what the kernel sees by itself, then what needs probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Kind {
    /// Context switches away from a thread, whether it waits or is interrupted.
    Switches,
    /// System calls.
    SystemCalls,
    /// Payloads that `read`, `write`, `send`, `recv` and their like have taken from user space.
    PayloadsIn,
    /// Payloads that they have put there.
    PayloadsOut,
    /// System calls in which TCP has sent.
    TcpSent,
    /// System calls in which TCP has received.
    TcpReceived,
    /// Packets that the IP stack has taken in.
    Packets,
    /// Softirqs of the network.
    Softirqs,
    /// Interrupts from one processor to another.
    BetweenCpus,
    /// Interrupts of devices.
    Devices,
    /// Payloads that were copied by the C library's `memcpy` and `memmove`.
    PayloadsCopied,
    /// HTTP heads that were parsed.
    HeadsParsed,
    /// HTTP heads that were written.
    HeadsWritten,
    /// Values that were read from JSON.
    JsonParsed,
    /// Values that were written as JSON.
    JsonWritten,
    /// Calls of any function of a JSON library.
    JsonAtAll,
}

/// How many kinds there are.
const KINDS: usize = Kind::JsonAtAll as usize + 1;

/// How many counters the programs have.
pub(super) const COUNTERS: usize = PARTS * KINDS;

/// What was counted up to some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts(pub(super) [u64; COUNTERS]);

impl Counts {
    /// Of one part of the path.
    pub fn of(&self, part: Part, kind: Kind) -> u64 {
        self.0[part as usize * KINDS + kind as usize]
    }

    /// Of the whole host, whether on the path or not.
    pub fn of_all(&self, kind: Kind) -> u64 {
        let all = self.0.iter().skip(kind as usize).step_by(KINDS);
        all.sum()
    }

    /// What came after an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = self.clone();
        for (count, before) in since.0.iter_mut().zip(earlier.0) {
            *count = count.saturating_sub(before);
        }
        since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_counters_of_its_own() {
        let mut counts = Counts([0; COUNTERS]);
        counts.0[0] = 1;
        counts.0[KINDS] = 10;
        counts.0[2 * KINDS] = 100;
        counts.0[2 * KINDS + 1] = 7;
        assert_eq!(counts.of(Part::Server, Kind::Switches), 10);
        assert_eq!(counts.of(Part::Members, Kind::Switches), 100);
        assert_eq!(counts.of(Part::Members, Kind::SystemCalls), 7);
        assert_eq!(counts.of_all(Kind::Switches), 111);
        assert_eq!(counts.of_all(Kind::JsonAtAll), 0);
        let mut earlier = counts.clone();
        earlier.0[KINDS] = 4;
        assert_eq!(counts.since(&earlier).of(Part::Server, Kind::Switches), 6);
        assert_eq!(counts.since(&earlier).of(Part::Members, Kind::Switches), 0);
    }
}
