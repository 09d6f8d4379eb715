//! What is said of a request beside its payload: its id, its deadline and its trace context. It lies before the blocks, on the
//! cache line of the block's note:
//!
//! ```text
//! 0    note            to whom the block was passed on last
//! 8    deadline        µs since 1970
//! 16   id              of the invocation, 16 bytes
//! 32   trace id        W3C, 16 bytes
//! 48   parent id       W3C, 8 bytes
//! 56   trace flags, version, whether there is a trace context, who may look before sleeping, whether the chain is crowded, whether
//!                      instances do best on one processor
//! ```
//!
//! The gateway writes it and members read it. Members could write it too, as they could the payload: the gateway decides nothing
//! by it.

/// Words of an envelope, the note before it not counted.
pub(crate) const WORDS: usize = 7;

const HAS_TRACE: u64 = 1 << 16;
const EVERYBODY_LOOKS: u64 = 1 << 17;
const CROWDED: u64 = 1 << 18;
const LOOKS_IN_TURN: u64 = 1 << 19;
const TOGETHER: u64 = 1 << 20;

/// W3C's trace context, version 00, as binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// Version, as the client sent it.
    pub version: u8,
    /// The trace.
    pub trace_id: [u8; 16],
    /// The client's span.
    pub parent_id: [u8; 8],
    /// Flags.
    pub flags: u8,
}

impl TraceContext {
    /// From a `traceparent` header of version 00's form, `00-<32 hex>-<16 hex>-<2 hex>`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let mut next = || parts.next();
        let (version, trace_id, parent_id, flags) = (next()?, next()?, next()?, next()?);
        if next().is_some() {
            return None;
        }
        Some(Self {
            version: hex::<1>(version)?[0],
            trace_id: hex(trace_id)?,
            parent_id: hex(parent_id)?,
            flags: hex::<1>(flags)?[0],
        })
    }

    /// The header.
    #[must_use]
    pub fn to_text(&self) -> String {
        use core::fmt::Write as _;
        let mut text = format!("{:02x}-", self.version);
        for byte in self.trace_id {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text.push('-');
        for byte in self.parent_id {
            let _ = write!(text, "{byte:02x}");
        }
        let _ = write!(text, "-{:02x}", self.flags);
        text
    }
}

fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        let digits = &text[at..at + 2];
        if digits.starts_with('+') {
            return None;
        }
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(bytes)
}

/// Which instances of a chain may look before they sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Looks {
    /// None: other work waits for the processors.
    Nobody,
    /// One at a time: there are fewer processors than instances.
    InTurn,
    /// Each.
    #[default]
    Everybody,
}

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// When the gateway gives the request up, in µs since 1970.
    pub deadline_unix_us: u64,
    /// The invocation's UUID.
    pub id: [u8; 16],
    /// The client's trace context, if it sent one.
    pub trace: Option<TraceContext>,
    /// Which instances may look for what comes next before they sleep.
    pub looks: Looks,
    /// Whether so many requests are under way that members do best not to interrupt each other.
    pub crowded: bool,
    /// Whether this is the only request under way, and nobody keeps a processor to look: then each hop is fastest between two
    /// instances on the same one.
    pub together: bool,
}

impl Envelope {
    pub(crate) fn to_words(self) -> [u64; WORDS] {
        let halves = |bytes: [u8; 16]| {
            let whole = u128::from_le_bytes(bytes);
            [whole as u64, (whole >> 64) as u64]
        };
        let [id, id_high] = halves(self.id);
        let mut words = [self.deadline_unix_us, id, id_high, 0, 0, 0, 0];
        if let Some(trace) = self.trace {
            let [trace_id, trace_id_high] = halves(trace.trace_id);
            words[3] = trace_id;
            words[4] = trace_id_high;
            words[5] = u64::from_le_bytes(trace.parent_id);
            words[6] = u64::from(trace.flags) | u64::from(trace.version) << 8 | HAS_TRACE;
        }
        words[6] |= match self.looks {
            Looks::Nobody => 0,
            Looks::InTurn => LOOKS_IN_TURN,
            Looks::Everybody => EVERYBODY_LOOKS,
        };
        if self.crowded {
            words[6] |= CROWDED;
        }
        if self.together {
            words[6] |= TOGETHER;
        }
        words
    }

    pub(crate) fn from_words(words: [u64; WORDS]) -> Self {
        let whole = |low: u64, high: u64| (u128::from(low) | u128::from(high) << 64).to_le_bytes();
        let [
            deadline_unix_us,
            id,
            id_high,
            trace_id,
            trace_id_high,
            parent_id,
            rest,
        ] = words;
        Self {
            deadline_unix_us,
            id: whole(id, id_high),
            trace: (rest & HAS_TRACE != 0).then(|| TraceContext {
                version: (rest >> 8) as u8,
                trace_id: whole(trace_id, trace_id_high),
                parent_id: parent_id.to_le_bytes(),
                flags: rest as u8,
            }),
            looks: match rest & (EVERYBODY_LOOKS | LOOKS_IN_TURN) {
                EVERYBODY_LOOKS => Looks::Everybody,
                LOOKS_IN_TURN => Looks::InTurn,
                // Both at once is nothing that the gateway writes.
                _ => Looks::Nobody,
            },
            crowded: rest & CROWDED != 0,
            together: rest & TOGETHER != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn an_envelope_survives_its_words() {
        let trace = TraceContext::parse(TEXT).expect("a trace context");
        for trace in [None, Some(trace)] {
            for (looks, crowded, together) in [
                (Looks::Nobody, false, false),
                (Looks::InTurn, false, true),
                (Looks::Everybody, false, false),
                (Looks::Nobody, true, false),
            ] {
                let envelope = Envelope {
                    deadline_unix_us: u64::MAX,
                    id: *b"0123456789abcdef",
                    trace,
                    looks,
                    crowded,
                    together,
                };
                assert_eq!(Envelope::from_words(envelope.to_words()), envelope);
            }
        }
    }

    #[test]
    fn a_trace_context_is_its_header_or_nothing() {
        let trace = TraceContext::parse(TEXT).expect("a trace context");
        assert_eq!(trace.to_text(), TEXT);
        for wrong in [
            "",
            "00",
            &TEXT[1..],
            &format!("{TEXT}-00"),
            &TEXT.replace("b7", "+7"),
            &TEXT.replace("b7", "ä"),
        ] {
            assert_eq!(TraceContext::parse(wrong), None, "{wrong}");
        }
    }
}
