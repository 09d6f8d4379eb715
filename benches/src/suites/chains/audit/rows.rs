//! The rows of the audit's table, and how each comes from what was counted.

use std::ops::Range;

use hearth_ebpf::audit::{Counts, Kind, Part};

/// Bytes of a request's body: for all but copies, and for these. No page of a database is as large as the large one.
pub(super) const SMALL: usize = 1 << 10;
pub(super) const LARGE: usize = 5 << 10;
/// What is as large as a large body, with heads and the rest of an event or without the quotes that JSON escapes, is a copy of it.
pub(super) const COPIES: Range<u64> = (LARGE as u64 - 64)..(7 << 10);

/// A figure: what it is called, of whom, and what is summed for it.
pub struct Row {
    /// As the report has it.
    pub name: &'static str,
    of: Of,
    how: How,
    kinds: &'static [Kind],
}

#[derive(Clone, Copy)]
enum Of {
    Part(Part),
    Host,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// The count by the number of requests.
    Each,
    /// The same of what moves as many bytes as a large payload has, without what does so where the payload is small.
    Copies,
}

const fn row(name: &'static str, of: Of, how: How, kinds: &'static [Kind]) -> Row {
    Row {
        name,
        of,
        how,
        kinds,
    }
}

const SERVER: Of = Of::Part(Part::Server);
const MEMBERS: Of = Of::Part(Part::Members);
const BY_THE_KERNEL: &[Kind] = &[Kind::PayloadsIn, Kind::PayloadsOut];
const INTERRUPTS: &[Kind] = &[Kind::Softirqs, Kind::BetweenCpus, Kind::Devices];

/// The table's rows, in its order.
pub const ROWS: [Row; 21] = [
    row(
        "copies of the payload by the kernel, server",
        SERVER,
        How::Copies,
        BY_THE_KERNEL,
    ),
    row(
        "copies of the payload by the kernel, functions",
        MEMBERS,
        How::Copies,
        BY_THE_KERNEL,
    ),
    row(
        "copies of the payload by memcpy, server",
        SERVER,
        How::Copies,
        &[Kind::PayloadsCopied],
    ),
    row(
        "copies of the payload by memcpy, functions",
        MEMBERS,
        How::Copies,
        &[Kind::PayloadsCopied],
    ),
    row(
        "context switches, server",
        SERVER,
        How::Each,
        &[Kind::Switches],
    ),
    row(
        "context switches, functions",
        MEMBERS,
        How::Each,
        &[Kind::Switches],
    ),
    row(
        "system calls, server",
        SERVER,
        How::Each,
        &[Kind::SystemCalls],
    ),
    row(
        "system calls, functions",
        MEMBERS,
        How::Each,
        &[Kind::SystemCalls],
    ),
    row("interrupts, whole host", Of::Host, How::Each, INTERRUPTS),
    row(
        "of these softirqs of the network",
        Of::Host,
        How::Each,
        &[Kind::Softirqs],
    ),
    row(
        "of these between processors",
        Of::Host,
        How::Each,
        &[Kind::BetweenCpus],
    ),
    row(
        "passes through TCP, server",
        SERVER,
        How::Each,
        &[Kind::TcpSent, Kind::TcpReceived],
    ),
    row(
        "passes through TCP, functions",
        MEMBERS,
        How::Each,
        &[Kind::TcpSent, Kind::TcpReceived],
    ),
    row(
        "packets through IP, whole host",
        Of::Host,
        How::Each,
        &[Kind::Packets],
    ),
    row(
        "HTTP heads written, server",
        SERVER,
        How::Each,
        &[Kind::HeadsWritten],
    ),
    row(
        "HTTP heads parsed, server",
        SERVER,
        How::Each,
        &[Kind::HeadsParsed],
    ),
    row(
        "JSON written, server",
        SERVER,
        How::Each,
        &[Kind::JsonWritten],
    ),
    row(
        "JSON parsed, server",
        SERVER,
        How::Each,
        &[Kind::JsonParsed],
    ),
    row(
        "JSON written, functions",
        MEMBERS,
        How::Each,
        &[Kind::JsonWritten],
    ),
    row(
        "JSON parsed, functions",
        MEMBERS,
        How::Each,
        &[Kind::JsonParsed],
    ),
    row(
        "calls into the JSON library, functions",
        MEMBERS,
        How::Each,
        &[Kind::JsonAtAll],
    ),
];

/// Whether a row is of what happens between the gateway's taking a request in and answering it: in the functions themselves.
pub fn is_within(row: &Row) -> bool {
    let is_counted = !matches!(row.kinds, [Kind::Switches | Kind::SystemCalls]);
    matches!(row.of, Of::Part(Part::Members)) && is_counted
}

impl Row {
    /// Whether it is counted by probes in user space.
    pub(super) fn needs_probes(&self) -> bool {
        self.kinds.iter().any(|kind| *kind >= Kind::PayloadsCopied)
    }

    /// Whether it needs what is counted so, of one part or of all.
    pub(super) fn needs(&self, kind: Kind, part: Option<Part>) -> bool {
        let is_of = match self.of {
            Of::Part(of) => part.is_none_or(|part| part == of),
            Of::Host => true,
        };
        is_of && self.kinds.contains(&kind)
    }

    /// Its value by what so many requests with small and as many with large payloads have added.
    pub(super) fn value(&self, small: &Counts, large: &Counts, requests: u64) -> f64 {
        match self.how {
            How::Each => each(self.sum(small), requests),
            How::Copies => copies(self.sum(small), self.sum(large), requests),
        }
    }

    fn sum(&self, counts: &Counts) -> u64 {
        let one = |kind: &Kind| match self.of {
            Of::Part(part) => counts.of(part, *kind),
            Of::Host => counts.of_all(*kind),
        };
        self.kinds.iter().map(one).sum()
    }
}

fn each(count: u64, requests: u64) -> f64 {
    hundredth(count as f64 / requests as f64)
}

/// How often the payload was copied.
fn copies(small: u64, large: u64, requests: u64) -> f64 {
    hundredth((large as f64 - small as f64) / requests as f64)
}

fn hundredth(value: f64) -> f64 {
    // Not -0.
    (value * 100.0).round() / 100.0 + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_copied_whatever_the_payload_is_no_copy_of_it() {
        let requests = 100;
        for times in [0, 1, 5] {
            // Three for other reasons.
            let found = copies(3 * requests, (3 + times) * requests, requests);
            assert_eq!(found, times as f64);
        }
        // One less now and then.
        let zero = copies(3 * requests, 3 * requests - 1, 1000);
        assert!(zero == 0.0 && zero.is_sign_positive());
        assert_eq!(each(667, 100), 6.67);
    }

    #[test]
    fn rows_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> = ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ROWS.len());
        let within: Vec<_> = ROWS.iter().filter(|row| is_within(row)).collect();
        assert_eq!(within.len(), 6);
        assert!(within.iter().all(|row| row.name.ends_with("functions")));
    }
}
