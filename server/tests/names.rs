//! The resolver's reading of DNS messages: a fuzz target. Questions come from functions, answers from whoever can send a datagram
//! to the host.
//!
//! `cargo test` runs a bounded number of random cases; `cargo bolero test -p hearth --test names arbitrary_questions` fuzzes.

use std::time::Duration;

use hearth::network::resolver::{Answer, Asked, Kind, Received, read_answer, read_question};
use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};

/// Random cases in a run of the test suite: a second or two.
const CASES: usize = 20_000;
/// More than a datagram has that anybody sends.
const MAX: usize = 600;

fn name() -> Name {
    Name::from_ascii("api.example.com.").expect("a name")
}

/// A message that is one but for what comes at random, which seldom is.
fn like_one(input: &[u8], kind: MessageType) -> Vec<u8> {
    let mut message = Message::new(7, kind, OpCode::Query);
    message.add_query(Query::query(name(), RecordType::A));
    let mut bytes = message.to_vec().expect("a message");
    if let [answers, authorities, additionals, ..] = input {
        bytes[7] = answers % 8;
        bytes[9] = authorities % 4;
        bytes[11] = additionals % 4;
    }
    bytes.extend_from_slice(input.get(3..).unwrap_or_default());
    bytes
}

fn question(bytes: &[u8]) {
    match read_question(bytes) {
        Received::Question(question) => {
            if let Some(name) = &question.name {
                assert!(!name.is_empty() && name.len() <= 255);
                let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
                assert!(
                    name.bytes()
                        .all(|byte| good(byte) || b"-_.".contains(&byte))
                );
            }
            let most = question.udp_bytes();
            assert!((512..=1232).contains(&most));
            let addresses = [[192, 0, 2, 1].into(); 40];
            let answer = question
                .answer(
                    ResponseCode::NoError,
                    &addresses,
                    Duration::from_secs(1),
                    most,
                )
                .expect("an answer");
            assert!(answer.len() <= most);
            assert_eq!(answer[..2], bytes[..2]);
        }
        Received::Answer(answer) => assert_eq!(answer[..2], bytes[..2]),
        Received::Nothing => {}
    }
}

fn answer(bytes: &[u8]) {
    let asked = Asked {
        id: 7,
        name: name(),
        kind: Kind::A,
    };
    if let Ok(Answer::Addresses(addresses, ttl)) = read_answer(bytes, &asked) {
        assert!(addresses.len() <= 32 && addresses.iter().all(std::net::IpAddr::is_ipv4));
        assert!(ttl.as_secs() <= u64::from(u32::MAX >> 1));
    }
}

#[test]
fn arbitrary_questions() {
    bolero::check!()
        .with_iterations(CASES)
        .with_max_len(MAX)
        .for_each(|input: &[u8]| {
            question(input);
            question(&like_one(input, MessageType::Query));
        });
}

#[test]
fn arbitrary_answers() {
    bolero::check!()
        .with_iterations(CASES)
        .with_max_len(MAX)
        .for_each(|input: &[u8]| {
            answer(input);
            answer(&like_one(input, MessageType::Response));
        });
}
