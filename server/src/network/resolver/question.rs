//! Reads a function's DNS query and writes the reply. The function controls every byte of a query.

use std::net::IpAddr;
use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};

/// Size of a message header.
const HEADER: usize = 12;
/// Smallest size of a question, and of a record, with the root as its name.
const LEAST_QUESTION: usize = 5;
const LEAST_RECORD: usize = 11;
/// UDP payload that every client accepts (RFC 1035).
const UDP_BYTES: usize = 512;
/// Largest UDP reply: more would be fragmented (RFC 9715).
const UDP_BYTES_MAX: u16 = 1232;

/// The record type asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Service bindings (`HTTPS`, `SVCB`). They contain addresses that nobody has checked, so the answer is always
    /// empty.
    Service,
    /// Other types. They lead to no address but could carry data out.
    Other(u16),
}

impl Kind {
    fn of(record: RecordType) -> Self {
        match record {
            RecordType::A => Self::A,
            RecordType::AAAA => Self::Aaaa,
            RecordType::HTTPS | RecordType::SVCB => Self::Service,
            other => Self::Other(other.into()),
        }
    }

    /// The record type that holds such addresses.
    pub(super) fn record_type(self) -> Option<RecordType> {
        match self {
            Self::A => Some(RecordType::A),
            Self::Aaaa => Some(RecordType::AAAA),
            Self::Service | Self::Other(_) => None,
        }
    }
}

/// One query.
#[derive(Debug, Clone)]
pub struct Question {
    /// The name in lower case, without its trailing dot. None if it cannot be a host name.
    pub name: Option<String>,
    /// The record type.
    pub kind: Kind,
    id: u16,
    query: Query,
    recursion_desired: bool,
    /// Largest UDP reply that the client announced.
    payload: Option<u16>,
}

/// What a message is.
#[derive(Debug)]
pub enum Received {
    /// A query.
    Question(Box<Question>),
    /// A message with a fixed reply.
    Answer(Vec<u8>),
    /// Not a message that can be answered.
    Nothing,
}

/// Whether a message's counts fit its size: the decoder allocates by them.
pub(super) fn counts_fit(bytes: &[u8], is_answer: bool) -> bool {
    let count = |at: usize| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    if bytes.len() < HEADER {
        return false;
    }
    let records = count(6) + count(8) + count(10);
    let is_question = is_answer || (count(6) == 0 && count(8) == 0 && count(10) <= 2);
    count(4) == 1 && is_question && HEADER + LEAST_QUESTION + records * LEAST_RECORD <= bytes.len()
}

/// Reads a message from a function.
pub fn read(bytes: &[u8]) -> Received {
    let Some([high, low, flags, ..]) = bytes.first_chunk::<HEADER>() else {
        return Received::Nothing;
    };
    // Answering a reply could loop forever.
    if flags & 0x80 != 0 {
        return Received::Nothing;
    }
    let id = u16::from_be_bytes([*high, *low]);
    let refuse = |code| {
        let message = Message::error_msg(id, OpCode::Query, code);
        message.to_vec().map_or(Received::Nothing, Received::Answer)
    };
    if !counts_fit(bytes, false) {
        return refuse(ResponseCode::FormErr);
    }
    let Ok(mut message) = Message::from_vec(bytes) else {
        return refuse(ResponseCode::FormErr);
    };
    if message.metadata.op_code != OpCode::Query {
        return refuse(ResponseCode::NotImp);
    }
    let payload = message.edns.as_ref().map(Edns::max_payload);
    match message.queries.pop() {
        Some(query) if query.query_class == DNSClass::IN => {
            Received::Question(Box::new(Question {
                name: host_name(&query.name),
                kind: Kind::of(query.query_type),
                id,
                recursion_desired: message.metadata.recursion_desired,
                query,
                payload,
            }))
        }
        _ => refuse(ResponseCode::Refused),
    }
}

/// A name in the form that policies compare.
pub(super) fn host_name(name: &Name) -> Option<String> {
    let mut text = String::with_capacity(name.len());
    for label in name.iter() {
        let good = label
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-' || *byte == b'_');
        if !good || label.is_empty() {
            return None;
        }
        if !text.is_empty() {
            text.push('.');
        }
        text.extend(
            label
                .iter()
                .map(|byte| char::from(byte.to_ascii_lowercase())),
        );
    }
    (!text.is_empty()).then_some(text)
}

impl Question {
    /// Largest reply over UDP.
    pub fn udp_bytes(&self) -> usize {
        let payload = self.payload.unwrap_or(0).min(UDP_BYTES_MAX);
        usize::from(payload).max(UDP_BYTES)
    }

    /// A reply of at most `bytes`; a longer one is truncated, so that the client retries over TCP. Leaves out
    /// `addresses` of the other family.
    pub fn answer(
        &self,
        code: ResponseCode,
        addresses: &[IpAddr],
        ttl: Duration,
        bytes: usize,
    ) -> Option<Vec<u8>> {
        let mut message = Message::new(self.id, MessageType::Response, OpCode::Query);
        message.metadata.recursion_desired = self.recursion_desired;
        message.metadata.recursion_available = true;
        message.metadata.response_code = code;
        message.add_query(self.query.clone());
        if self.payload.is_some() {
            let mut edns = Edns::new();
            edns.set_max_payload(UDP_BYTES_MAX);
            message.set_edns(edns);
        }
        let ttl = u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX >> 1);
        for address in addresses {
            let data = match (address, self.kind) {
                (IpAddr::V4(address), Kind::A) => RData::A(A(*address)),
                (IpAddr::V6(address), Kind::Aaaa) => RData::AAAA(AAAA(*address)),
                _ => continue,
            };
            message.add_answer(Record::from_rdata(self.query.name.clone(), ttl, data));
        }
        let encoded = message.to_vec().ok()?;
        match encoded.len() <= bytes {
            true => Some(encoded),
            false => message.truncate().to_vec().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &str, kind: RecordType) -> Vec<u8> {
        let mut message = Message::new(7, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
        message.to_vec().unwrap()
    }

    fn question(bytes: &[u8]) -> Question {
        match read(bytes) {
            Received::Question(question) => *question,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_question_is_read() {
        let read = question(&asked("API.Example.com.", RecordType::AAAA));
        assert_eq!(read.name.as_deref(), Some("api.example.com"));
        assert_eq!((read.kind, read.udp_bytes()), (Kind::Aaaa, 512));
        assert_eq!(
            question(&asked("a.example.", RecordType::HTTPS)).kind,
            Kind::Service
        );
        assert_eq!(
            question(&asked("a.example.", RecordType::TXT)).kind,
            Kind::Other(16)
        );
        assert_eq!(question(&asked(".", RecordType::A)).name, None);
    }

    #[test]
    fn names_that_no_host_has_are_none() {
        let name = Name::from_labels([&b"a.b"[..], b"example"]).unwrap();
        assert_eq!(host_name(&name), None);
        let name = Name::from_labels([&b"\0"[..], b"example"]).unwrap();
        assert_eq!(host_name(&name), None);
    }

    #[test]
    fn an_answer_has_the_question_and_its_addresses_alone() {
        let read = question(&asked("API.example.com.", RecordType::A));
        let addresses = ["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        let ttl = Duration::from_secs(60);
        let bytes = read
            .answer(ResponseCode::NoError, &addresses, ttl, 512)
            .unwrap();
        let message = Message::from_vec(&bytes).unwrap();
        assert_eq!(message.metadata.id, 7);
        assert_eq!(message.queries[0].name.to_ascii(), "API.example.com.");
        assert_eq!(message.answers.len(), 1);
        assert_eq!(message.answers[0].ttl, 60);
    }

    #[test]
    fn what_does_not_fit_is_asked_for_again() {
        let read = question(&asked("api.example.com.", RecordType::A));
        let addresses: Vec<IpAddr> = (0..64_u8).map(|last| [192, 0, 2, last].into()).collect();
        let answer = |bytes| {
            let encoded = read
                .answer(ResponseCode::NoError, &addresses, Duration::ZERO, bytes)
                .unwrap();
            assert!(encoded.len() <= bytes);
            Message::from_vec(&encoded).unwrap()
        };
        assert!(answer(512).metadata.truncation && answer(512).answers.is_empty());
        assert_eq!(answer(65_535).answers.len(), 64);
    }

    #[test]
    fn what_is_no_question_is_not_taken_for_one() {
        let good = asked("a.example.", RecordType::A);
        let mut answer = good.clone();
        answer[2] |= 0x80;
        assert!(matches!(read(&answer), Received::Nothing));
        assert!(matches!(read(&good[..11]), Received::Nothing));
        for (at, value) in [(5, 2), (5, 0), (7, 1), (4, 255), (11, 200), (2, 0x28)] {
            let mut wrong = good.clone();
            wrong[at] = value;
            assert!(matches!(read(&wrong), Received::Answer(_)), "{at}");
        }
    }
}
