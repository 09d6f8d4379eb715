//! Reads a DNS server's answer, and trusts only what belongs to the query.

use std::net::IpAddr;
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData};

use super::question::{Kind, counts_fit};

/// Longest chain of aliases to follow.
const CHAIN_MAX: usize = 16;
/// Most addresses to take from an answer: each is allowed in the kernel.
const ADDRESSES_MAX: usize = 32;

/// The query that was sent.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Id of the message.
    pub id: u16,
    /// The name.
    pub name: Name,
    /// A or AAAA.
    pub kind: Kind,
}

/// The server's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The name's addresses, perhaps none of this kind, and their TTL.
    Addresses(Vec<IpAddr>, Duration),
    /// The name does not exist.
    NoSuchName,
    /// The answer was truncated.
    Truncated,
    /// The server failed to resolve it.
    Failed,
}

/// Not an answer, or the answer to another query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotTheAnswer;

/// Reads the answer to a query. Takes only addresses of the name or of its aliases.
///
/// # Errors
/// [`NotTheAnswer`]: wait for another message.
pub fn read(bytes: &[u8], asked: &Asked) -> Result<Answer, NotTheAnswer> {
    if !counts_fit(bytes, true) {
        return Err(NotTheAnswer);
    }
    let message = Message::from_vec(bytes).map_err(|_| NotTheAnswer)?;
    let [query] = &message.queries[..] else {
        return Err(NotTheAnswer);
    };
    let is_answer = message.metadata.message_type == MessageType::Response
        && message.metadata.id == asked.id
        && query.query_class == DNSClass::IN
        && Some(query.query_type) == asked.kind.record_type()
        && query.name == asked.name;
    if !is_answer {
        return Err(NotTheAnswer);
    }
    if message.metadata.truncation {
        return Ok(Answer::Truncated);
    }
    match message.metadata.response_code {
        ResponseCode::NoError => Ok(addresses(&message, asked)),
        ResponseCode::NXDomain => Ok(Answer::NoSuchName),
        _ => Ok(Answer::Failed),
    }
}

fn addresses(message: &Message, asked: &Asked) -> Answer {
    let mut name = &asked.name;
    // Larger than any TTL.
    let mut ttl = u32::MAX;
    for _ in 0..CHAIN_MAX {
        let of_name = || {
            message
                .answers
                .iter()
                .filter(|record| record.dns_class == DNSClass::IN && record.name == *name)
        };
        let mut found: Vec<IpAddr> = Vec::new();
        for record in of_name() {
            let address = match (&record.data, asked.kind) {
                (RData::A(address), Kind::A) => IpAddr::V4(address.0),
                (RData::AAAA(address), Kind::Aaaa) => IpAddr::V6(address.0),
                _ => continue,
            };
            ttl = ttl.min(seconds(record.ttl));
            if found.len() < ADDRESSES_MAX && !found.contains(&address) {
                found.push(address);
            }
        }
        if !found.is_empty() {
            return Answer::Addresses(found, Duration::from_secs(ttl.into()));
        }
        let alias = of_name().find_map(|record| match &record.data {
            RData::CNAME(target) => Some((&target.0, record.ttl)),
            _ => None,
        });
        let Some((target, of_alias)) = alias else {
            // The name has no address of this kind. That is not cached: nothing says for how long it holds.
            return Answer::Addresses(Vec::new(), Duration::ZERO);
        };
        ttl = ttl.min(seconds(of_alias));
        name = target;
    }
    Answer::Failed
}

/// A TTL with its highest bit set counts as 0 (RFC 2181, section 8).
fn seconds(ttl: u32) -> u32 {
    if ttl > u32::MAX >> 1 { 0 } else { ttl }
}

#[cfg(test)]
mod tests {
    use hickory_proto::op::{OpCode, Query};
    use hickory_proto::rr::rdata::{A, AAAA, CNAME};
    use hickory_proto::rr::{Record, RecordType};

    use super::*;

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    fn asked() -> Asked {
        Asked {
            id: 9,
            name: name("api.example.com."),
            kind: Kind::A,
        }
    }

    fn message(records: &[(&str, u32, RData)]) -> Message {
        let mut message = Message::new(9, MessageType::Response, OpCode::Query);
        message.add_query(Query::query(name("api.example.com."), RecordType::A));
        for (owner, ttl, data) in records {
            message.add_answer(Record::from_rdata(name(owner), *ttl, data.clone()));
        }
        message
    }

    fn read_message(message: &Message) -> Result<Answer, NotTheAnswer> {
        read(&message.to_vec().unwrap(), &asked())
    }

    fn a(last: u8) -> RData {
        RData::A(A::new(192, 0, 2, last))
    }

    fn alias(target: &str) -> RData {
        RData::CNAME(CNAME(name(target)))
    }

    fn addresses(records: &[(&str, u32, RData)]) -> (Vec<String>, u64) {
        match read_message(&message(records)).unwrap() {
            Answer::Addresses(addresses, ttl) => (
                addresses.iter().map(ToString::to_string).collect(),
                ttl.as_secs(),
            ),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn addresses_of_the_name_and_of_its_aliases_are_taken() {
        let direct = [
            ("API.example.com.", 30, a(1)),
            ("api.example.com.", 20, a(2)),
        ];
        assert_eq!(
            addresses(&direct),
            (vec!["192.0.2.1".into(), "192.0.2.2".into()], 20)
        );
        let chain = [
            ("b.cdn.test.", 10, a(3)),
            ("a.cdn.test.", 50, alias("b.cdn.test.")),
            ("api.example.com.", 40, alias("a.cdn.test.")),
        ];
        assert_eq!(addresses(&chain), (vec!["192.0.2.3".into()], 10));
        assert_eq!(addresses(&[("api.example.com.", u32::MAX, a(1))]).1, 0);
    }

    #[test]
    fn what_belongs_to_other_names_is_left() {
        let others = [
            ("other.example.com.", 30, a(1)),
            (
                "api.example.com.",
                30,
                RData::AAAA(AAAA("2001:db8::1".parse().unwrap())),
            ),
        ];
        assert_eq!(addresses(&others), (Vec::new(), 0));
        let mut additional = message(&[]);
        additional.add_additional(Record::from_rdata(name("api.example.com."), 30, a(1)));
        assert_eq!(
            read_message(&additional),
            Ok(Answer::Addresses(Vec::new(), Duration::ZERO))
        );
    }

    #[test]
    fn a_circle_of_aliases_ends() {
        let circle = [
            ("api.example.com.", 1, alias("a.test.")),
            ("a.test.", 1, alias("api.example.com.")),
        ];
        assert_eq!(read_message(&message(&circle)), Ok(Answer::Failed));
    }

    #[test]
    fn the_answer_to_another_question_is_none() {
        let good = || message(&[("api.example.com.", 30, a(1))]);
        assert!(read_message(&good()).is_ok());
        let mut wrong = good();
        wrong.metadata.id = 8;
        assert_eq!(read_message(&wrong), Err(NotTheAnswer));
        let mut wrong = good();
        wrong.metadata.message_type = MessageType::Query;
        assert_eq!(read_message(&wrong), Err(NotTheAnswer));
        for query in [
            Query::query(name("api.example.net."), RecordType::A),
            Query::query(name("api.example.com."), RecordType::AAAA),
        ] {
            let mut wrong = good();
            wrong.queries = vec![query];
            assert_eq!(read_message(&wrong), Err(NotTheAnswer));
        }
        let mut wrong = good();
        wrong.queries.clear();
        assert_eq!(read_message(&wrong), Err(NotTheAnswer));
    }

    #[test]
    fn failures_are_told_apart() {
        for (code, answer) in [
            (ResponseCode::NXDomain, Answer::NoSuchName),
            (ResponseCode::ServFail, Answer::Failed),
            (ResponseCode::Refused, Answer::Failed),
        ] {
            let mut message = message(&[]);
            message.metadata.response_code = code;
            assert_eq!(read_message(&message), Ok(answer));
        }
        let mut long = message(&[]);
        long.metadata.truncation = true;
        assert_eq!(read_message(&long), Ok(Answer::Truncated));
    }

    #[test]
    fn an_answer_has_a_bounded_number_of_addresses() {
        let many: Vec<_> = (0..100)
            .map(|last| ("api.example.com.", 1, a(last)))
            .collect();
        assert_eq!(addresses(&many).0.len(), ADDRESSES_MAX);
    }
}
