//! What came of one request.

use serde::{Deserialize, Serialize};

/// Why a request got no whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// No connection.
    Connect,
    /// No whole answer within the time limit.
    Timeout,
    /// The connection ended before the whole answer.
    Closed,
    /// The answer is not HTTP/1.1, or beyond a limit.
    Malformed,
    /// The answer's status is not 200, the only one that STeLLAR takes.
    Status,
}

impl Fault {
    /// All of them; a fault's number in the encoding is its place here plus 1.
    pub const ALL: [Self; 5] = [
        Self::Connect,
        Self::Timeout,
        Self::Closed,
        Self::Malformed,
        Self::Status,
    ];
}

/// One request. Times are in ns from the run's begin on the monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sample {
    /// Which of the plan's requests.
    pub request: u32,
    /// Which burst, counted from 0; 0 without bursts.
    pub burst: u32,
    /// When it should have been sent: its arrival time, or when its burst began. In a closed loop, when it was sent.
    pub intended: u64,
    /// When sending began, opening a connection included.
    pub sent: u64,
    /// When its connection was open; 0 for one that was open before.
    pub connected: u64,
    /// When the answer's first byte was read; 0 if none came.
    pub first: u64,
    /// When the answer's last byte was read, or the request failed.
    pub last: u64,
    /// HTTP status, 0 without one.
    pub status: u16,
    /// Bytes of the answer's body.
    pub bytes: u64,
    /// Why it failed.
    pub fault: Option<Fault>,
    /// The first bytes of the body, as many as the plan asks for.
    pub body: Option<Box<[u8]>>,
}

impl Sample {
    /// From sending to the first byte, in ns: what STeLLAR calls latency. Uncorrected for coordinated omission.
    pub fn to_first(&self) -> u64 {
        self.first.saturating_sub(self.sent)
    }

    /// From sending to the last byte, in ns. Uncorrected for coordinated omission.
    pub fn to_last(&self) -> u64 {
        self.last.saturating_sub(self.sent)
    }

    /// From the intended time to the first byte, in ns: corrected for coordinated omission.
    pub fn to_first_corrected(&self) -> u64 {
        self.first.saturating_sub(self.intended)
    }

    /// From the intended time to the last byte, in ns: corrected for coordinated omission.
    pub fn to_last_corrected(&self) -> u64 {
        self.last.saturating_sub(self.intended)
    }
}

/// Samples as they come, in pieces: one vector would be copied whenever it is full, which takes some milliseconds at hundreds of
/// thousands of them, and all requests under way would seem to have taken as long.
#[derive(Debug, Default)]
pub(super) struct Collected {
    full: Vec<Vec<Sample>>,
    open: Vec<Sample>,
    /// How many there are.
    pub(super) count: usize,
}

impl Collected {
    /// Samples of a piece.
    const PIECE: usize = 1 << 12;

    /// Takes some more.
    pub(super) fn take(&mut self, more: &mut Vec<Sample>) {
        self.count += more.len();
        for sample in more.drain(..) {
            if self.open.len() == self.open.capacity() {
                let next = Vec::with_capacity(Self::PIECE);
                self.full.push(std::mem::replace(&mut self.open, next));
            }
            self.open.push(sample);
        }
    }

    /// All of them, in the order in which they came.
    pub(super) fn into_all(self) -> Vec<Sample> {
        let mut all = Vec::with_capacity(self.count);
        all.extend(self.full.into_iter().flatten());
        all.extend(self.open);
        all
    }
}

/// Bytes of an encoded sample without its body.
const FIXED: usize = 4 * 2 + 8 * 6 + 2 + 1 + 4;

/// Appends a sample as [`decode`] reads it.
pub(super) fn encode(sample: &Sample, out: &mut Vec<u8>) {
    out.extend(sample.request.to_le_bytes());
    out.extend(sample.burst.to_le_bytes());
    for number in [
        sample.intended,
        sample.sent,
        sample.connected,
        sample.first,
        sample.last,
        sample.bytes,
    ] {
        out.extend(number.to_le_bytes());
    }
    out.extend(sample.status.to_le_bytes());
    let fault = Fault::ALL.iter().position(|one| Some(*one) == sample.fault);
    out.push(fault.map_or(0, |place| place as u8 + 1));
    let body = sample.body.as_deref().unwrap_or_default();
    out.extend((body.len() as u32).to_le_bytes());
    out.extend(body);
}

/// Takes a sample off the front. None if there is not a whole one.
pub(super) fn decode(bytes: &mut &[u8]) -> Option<Sample> {
    fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
        let (first, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(*first)
    }
    if bytes.len() < FIXED {
        return None;
    }
    let mut sample = Sample {
        request: u32::from_le_bytes(take(bytes)?),
        burst: u32::from_le_bytes(take(bytes)?),
        intended: u64::from_le_bytes(take(bytes)?),
        sent: u64::from_le_bytes(take(bytes)?),
        connected: u64::from_le_bytes(take(bytes)?),
        first: u64::from_le_bytes(take(bytes)?),
        last: u64::from_le_bytes(take(bytes)?),
        bytes: u64::from_le_bytes(take(bytes)?),
        status: u16::from_le_bytes(take(bytes)?),
        ..Sample::default()
    };
    sample.fault = match take::<1>(bytes)? {
        [0] => None,
        [number] => Some(*Fault::ALL.get(usize::from(number) - 1)?),
    };
    let length = u32::from_le_bytes(take(bytes)?) as usize;
    let (body, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    sample.body = (length > 0).then(|| body.into());
    Some(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_collected_in_their_order() {
        let mut collected = Collected::default();
        assert!(Collected::default().into_all().is_empty());
        for round in 0..30_u32 {
            let mut more = (round * 1_000..(round + 1) * 1_000)
                .map(|request| Sample {
                    request,
                    ..Sample::default()
                })
                .collect();
            collected.take(&mut more);
            assert!(more.is_empty());
        }
        assert_eq!(collected.count, 30_000);
        let all = collected.into_all();
        assert!(all.iter().map(|sample| sample.request).eq(0..30_000));
    }

    #[test]
    fn samples_survive_their_encoding_and_cut_ones_are_refused() {
        let plain = Sample {
            request: 7,
            burst: 3,
            intended: 1,
            sent: 2,
            connected: 3,
            first: 4,
            last: u64::MAX,
            status: 503,
            bytes: 9,
            fault: Some(Fault::Status),
            body: None,
        };
        let with_body = Sample {
            fault: None,
            body: Some(b"hello".as_slice().into()),
            ..plain.clone()
        };
        let mut bytes = Vec::new();
        encode(&plain, &mut bytes);
        assert_eq!(bytes.len(), FIXED);
        encode(&with_body, &mut bytes);
        let mut rest = bytes.as_slice();
        assert_eq!(decode(&mut rest), Some(plain));
        assert_eq!(decode(&mut rest), Some(with_body));
        assert_eq!(decode(&mut rest), None);
        for end in 0..FIXED {
            assert_eq!(decode(&mut &bytes[..end]), None);
        }
        // The second one's body is cut.
        let mut cut = &bytes[FIXED..bytes.len() - 1];
        assert_eq!(decode(&mut cut), None);
        bytes[FIXED - 5] = 77;
        assert_eq!(decode(&mut bytes.as_slice()), None, "no such fault");
    }
}
