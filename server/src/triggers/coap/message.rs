//! CoAP's messages (RFC 7252, 3 to 5): what came, and how answers are written.

use bytes::Bytes;
use coap_lite::{CoapOption, MessageClass, MessageType, Packet};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::block::Block;
use super::code::Code;

/// Most bytes of a message that is read with its options. One fits an IP packet as a rule (RFC 7252, 4.6); this bounds what
/// reading them costs.
pub(super) const MESSAGE_MAX: usize = 4096;
/// Most bytes of a message around its payload: header, token, and the options that answers have.
pub(super) const AROUND: usize = 4 + 8 + 32 + 1;

/// What every request has, whatever else is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// Whether the client waits for a receipt.
    pub(super) confirmable: bool,
    pub(super) id: u16,
    pub(super) token: Vec<u8>,
}

/// A request that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) method: Code,
    /// `/` and the segments, percent-encoded.
    pub(super) path: String,
    /// The parts between `&`, percent-encoded.
    pub(super) query: String,
    pub(super) content_format: Option<u16>,
    pub(super) accept: Option<u16>,
    pub(super) block1: Option<Block>,
    pub(super) block2: Option<Block>,
    pub(super) payload: Bytes,
}

/// A message, as the server sees it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// A request, or the code that refuses it.
    Request(Head, Result<Call, Code>),
    /// Ours of this id has arrived, or was refused.
    Receipt(u16),
    /// To be refused with a reset: a ping, or what makes no sense.
    Refuse(u16),
    /// To be ignored.
    Nothing,
}

/// Of the bytes of a datagram.
pub(super) fn read(datagram: &[u8]) -> Incoming {
    let [first, _, id @ ..] = datagram else {
        return Incoming::Nothing;
    };
    let ([high, low, ..], 1) = (id, first >> 6) else {
        return Incoming::Nothing;
    };
    let id = u16::from_be_bytes([*high, *low]);
    let is_confirmable = first >> 4 & 3 == 0;
    let meaningless = match is_confirmable {
        true => Incoming::Refuse(id),
        false => Incoming::Nothing,
    };
    let most = match datagram.len() > MESSAGE_MAX {
        // Enough to say so.
        true => 4 + usize::from(first & 15),
        false => datagram.len(),
    };
    let Ok(packet) = Packet::from_bytes(&datagram[..most]) else {
        return meaningless;
    };
    let code = Code(u8::from(packet.header.code));
    match packet.header.get_type() {
        MessageType::Acknowledgement | MessageType::Reset => Incoming::Receipt(id),
        _ if !(1..32).contains(&code.0) => meaningless,
        _ => {
            let head = Head {
                confirmable: is_confirmable,
                id,
                token: packet.get_token().to_vec(),
            };
            let call = match datagram.len() > MESSAGE_MAX {
                true => Err(Code::TOO_LARGE),
                false => call(code, packet),
            };
            match call {
                // RFC 7252, 5.4.1: without a receipt to carry the refusal.
                Err(Code::BAD_OPTION) if !is_confirmable => Incoming::Nothing,
                call => Incoming::Request(head, call),
            }
        }
    }
}

fn call(method: Code, packet: Packet) -> Result<Call, Code> {
    if method.method().is_none() {
        return Err(Code::METHOD_NOT_ALLOWED);
    }
    let mut call = Call {
        method,
        path: String::new(),
        query: String::new(),
        content_format: None,
        accept: None,
        block1: None,
        block2: None,
        payload: Bytes::new(),
    };
    for (number, values) in packet.options() {
        let option = CoapOption::from(*number);
        for value in values {
            match option {
                CoapOption::UriPath => push(&mut call.path, '/', value, SEGMENT)?,
                CoapOption::UriQuery => push(&mut call.query, '&', value, QUERY)?,
                CoapOption::ContentFormat => call.content_format = Some(number_of(value)?),
                CoapOption::Accept => call.accept = Some(number_of(value)?),
                CoapOption::Block1 => call.block1 = Some(block_of(value)?),
                CoapOption::Block2 => call.block2 = Some(block_of(value)?),
                CoapOption::ProxyUri | CoapOption::ProxyScheme => return Err(Code::NO_PROXY),
                // The port is the host's whole.
                CoapOption::UriHost | CoapOption::UriPort => {}
                // Odd numbers are those that must not be ignored (RFC 7252, 5.4.6).
                _ if number % 2 == 1 => return Err(Code::BAD_OPTION),
                _ => {}
            }
        }
    }
    if call.path.is_empty() {
        call.path.push('/');
    }
    let query = call.query.strip_prefix('&').map(str::to_owned);
    call.query = query.unwrap_or_default();
    call.payload = packet.payload.into();
    Ok(call)
}

/// What stays as it is in a segment, and in a part of the query (RFC 3986).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b':')
    .remove(b'@')
    .remove(b'&')
    .remove(b'=');
const QUERY: &AsciiSet = &SEGMENT.remove(b'/').remove(b'?').add(b'&').add(b'+');

fn push(text: &mut String, before: char, value: &[u8], set: &'static AsciiSet) -> Result<(), Code> {
    let value = std::str::from_utf8(value).map_err(|_| Code::BAD_REQUEST)?;
    text.push(before);
    text.extend(utf8_percent_encode(value, set));
    Ok(())
}

fn number_of(value: &[u8]) -> Result<u16, Code> {
    match *value {
        [] => Ok(0),
        [low] => Ok(low.into()),
        [high, low] => Ok(u16::from_be_bytes([high, low])),
        _ => Err(Code::BAD_OPTION),
    }
}

fn block_of(value: &[u8]) -> Result<Block, Code> {
    Block::read(value).ok_or(Code::BAD_REQUEST)
}

/// An answer, or a piece of one.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) etag: Option<u32>,
    pub(super) content_format: Option<u16>,
    /// Seconds; for a refusal, when to come back.
    pub(super) max_age: Option<u32>,
    pub(super) block1: Option<Block>,
    pub(super) block2: Option<Block>,
    /// Most bytes that a request's body may have.
    pub(super) size1: Option<u32>,
    /// Bytes of the answer's whole body.
    pub(super) size2: Option<u32>,
}

/// How a message is sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    pub(super) kind: MessageType,
    pub(super) id: u16,
}

/// The bytes of an answer.
pub(super) fn write(way: Way, token: &[u8], code: Code, options: &Options, body: &[u8]) -> Bytes {
    let mut packet = Packet::new();
    packet.header.set_version(1);
    packet.header.set_type(way.kind);
    packet.header.message_id = way.id;
    packet.header.code = MessageClass::from(code.0);
    packet.set_token(token.to_vec());
    if let Some(etag) = options.etag {
        packet.add_option(CoapOption::ETag, etag.to_be_bytes().to_vec());
    }
    let number = |number: u32| {
        let bytes = number.to_be_bytes();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        bytes[zeros..].to_vec()
    };
    for (option, value) in [
        (
            CoapOption::ContentFormat,
            options.content_format.map(|format| number(format.into())),
        ),
        (CoapOption::MaxAge, options.max_age.map(number)),
        (CoapOption::Block1, options.block1.map(Block::value)),
        (CoapOption::Block2, options.block2.map(Block::value)),
        (CoapOption::Size1, options.size1.map(number)),
        (CoapOption::Size2, options.size2.map(number)),
    ] {
        if let Some(value) = value {
            packet.add_option(option, value);
        }
    }
    packet.payload = body.to_vec();
    // Its only error is a limit.
    packet.to_bytes_unlimited().unwrap_or_default().into()
}

/// The bytes of a message without anything: a receipt, or a reset.
pub(super) fn write_empty(kind: MessageType, id: u16) -> Bytes {
    let way = Way { kind, id };
    write(way, &[], Code::EMPTY, &Options::default(), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(first: u8, code: u8, rest: &[u8]) -> Vec<u8> {
        [&[first, code, 0x12, 0x34], rest].concat()
    }

    fn asked(datagram: &[u8]) -> Result<Call, Code> {
        match read(datagram) {
            Incoming::Request(_, call) => call,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_has_path_query_and_body() {
        // GET /a%2F/ä?x=1&y=%26 with token 7.
        let rest = [
            &[7, 0xb2][..],
            b"a/",
            &[2],
            "ä".as_bytes(),
            &[0x43],
            b"x=1",
            &[3],
            b"y=&",
            &[0xff],
            b"hi",
        ];
        let Incoming::Request(head, call) = read(&message(0x41, 1, &rest.concat())) else {
            panic!("no request");
        };
        assert!(head.confirmable && head.token == [7] && head.id == 0x1234);
        let call = call.expect("understood");
        assert_eq!(call.path, "/a%2F/%C3%A4");
        assert_eq!(call.query, "x=1&y=%26");
        assert_eq!(call.payload, "hi");
        assert_eq!(asked(&message(0x40, 2, &[])).expect("a call").path, "/");
    }

    #[test]
    fn what_makes_no_sense_is_refused_or_ignored() {
        for (datagram, wanted) in [
            (vec![], Incoming::Nothing),
            (vec![0x40, 1, 0], Incoming::Nothing),
            // Another version.
            (message(0x80, 1, &[]), Incoming::Nothing),
            // Pings, and answers that nobody asked for.
            (message(0x40, 0, &[]), Incoming::Refuse(0x1234)),
            (message(0x50, 0, &[]), Incoming::Nothing),
            (message(0x40, 0x45, &[]), Incoming::Refuse(0x1234)),
            // A token that is too long, an option that is longer than the message.
            (message(0x49, 1, &[0; 9]), Incoming::Refuse(0x1234)),
            (message(0x50, 1, &[0xb9, 1]), Incoming::Nothing),
            (message(0x60, 0, &[]), Incoming::Receipt(0x1234)),
            (message(0x70, 0, &[]), Incoming::Receipt(0x1234)),
        ] {
            assert_eq!(read(&datagram), wanted, "{datagram:02x?}");
        }
    }

    #[test]
    fn what_cannot_be_answered_has_a_code() {
        for (datagram, code) in [
            (message(0x40, 9, &[]), Code::METHOD_NOT_ALLOWED),
            // If-Match, Proxy-Uri, a path that is not UTF-8, a reserved size.
            (message(0x40, 1, &[0x11, 1]), Code::BAD_OPTION),
            (message(0x40, 1, &[0xd1, 22, b'x']), Code::NO_PROXY),
            (message(0x40, 1, &[0xb1, 0xff]), Code::BAD_REQUEST),
            (message(0x40, 1, &[0xd1, 10, 7]), Code::BAD_REQUEST),
            (message(0x40, 2, &[0; MESSAGE_MAX]), Code::TOO_LARGE),
        ] {
            assert_eq!(asked(&datagram), Err(code), "{:02x?}", &datagram[..5]);
        }
        // Not confirmable: silence.
        assert_eq!(read(&message(0x50, 1, &[0x11, 1])), Incoming::Nothing);
    }

    #[test]
    fn codes_are_read_as_they_are_written() {
        assert_eq!(Code::parse("2.05"), Some(Code::CONTENT));
        assert_eq!(Code::parse("5.31"), Some(Code::new(5, 31)));
        for wrong in ["2.5", "2.32", "3.00", "0.01", "2.31", "205", "2.+5", ""] {
            assert_eq!(Code::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_answer_has_its_options_in_order() {
        let way = Way {
            kind: MessageType::Acknowledgement,
            id: 0x1234,
        };
        let options = Options {
            content_format: Some(50),
            block2: Block::read(&[0x0e]),
            size2: Some(2000),
            ..Options::default()
        };
        let bytes = write(way, &[9], Code::CONTENT, &options, b"hi");
        let wanted = [
            0x61, 0x45, 0x12, 0x34, 9, 0xc1, 50, 0xb1, 0x0e, 0x52, 0x07, 0xd0, 0xff, b'h', b'i',
        ];
        assert_eq!(bytes[..], wanted);
        assert_eq!(write_empty(MessageType::Reset, 1)[..], [0x70, 0, 0, 1]);
    }

    fn reads(datagram: &[u8]) {
        let Incoming::Request(head, Ok(call)) = read(datagram) else {
            return;
        };
        assert!(head.token.len() <= 8 && call.method.method().is_some());
        // As text in JSON, these are as long as they are.
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        assert!(call.path.starts_with('/'));
        assert!(call.path.bytes().chain(call.query.bytes()).all(is_plain));
        for block in [call.block1, call.block2].into_iter().flatten() {
            assert_eq!(Block::read(&block.value()), Some(block));
        }
        let way = Way {
            kind: MessageType::NonConfirmable,
            id: head.id,
        };
        let options = Options {
            content_format: call.content_format,
            block1: call.block1,
            block2: call.block2,
            ..Options::default()
        };
        let bytes = write(way, &head.token, Code::CONTENT, &options, &call.payload);
        let answer = Packet::from_bytes(&bytes).expect("an answer");
        assert_eq!(answer.get_token(), head.token);
        assert_eq!(answer.payload, call.payload);
        assert!(bytes.len() <= AROUND + call.payload.len());
    }

    #[test]
    fn arbitrary_datagrams() {
        bolero::check!()
            .with_iterations(20_000)
            .with_max_len(512)
            .for_each(|input: &[u8]| {
                reads(input);
                if let [first, code, rest @ ..] = input {
                    // A request, confirmable or not, with a token that fits.
                    let token = usize::from(first & 7);
                    let head = [0x40 | first & 0x17, 1 + code % 7, 0, 1];
                    reads(&[&head[..], &vec![7; token], rest].concat());
                }
            });
    }
}
