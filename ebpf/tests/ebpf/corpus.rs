//! One corpus of packets with the verdicts expected of them. Function 1 has TCP and UDP port 7000; nobody has port 9.

use hearth_ebpf::packet::{EXTENSION_HEADERS, Outcome};

use crate::frames::{ACK, Frame, PROVIDER_TAG, SYN, TAG, fragment, options, tcp, udp};

/// What is to happen to a packet, and how it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Passed, counted for the function.
    Ours,
    /// Dropped as malformed, counted for the function.
    Malformed,
    /// Passed, with ports that nobody has.
    NotOurs,
    /// Passed, since it was not read that far.
    Unread(Outcome),
}

pub struct Case {
    pub name: String,
    pub frame: Vec<u8>,
    pub expected: Expected,
}

/// Addresses of both families, by turns.
const ENDS: [[&str; 3]; 2] = [
    ["192.0.2.1:5000", "192.0.2.2:7000", "192.0.2.2:9"],
    [
        "[2001:db8::1]:5000",
        "[2001:db8::2]:7000",
        "[2001:db8::2]:9",
    ],
];

fn tags() -> Vec<Vec<[u8; 4]>> {
    vec![
        Vec::new(),
        vec![TAG],
        vec![PROVIDER_TAG],
        vec![PROVIDER_TAG, TAG],
        vec![TAG, TAG],
    ]
}

/// Whole packets of every shape that is followed.
fn wholes() -> Vec<(String, Frame)> {
    let mut frames = Vec::new();
    for [from, ours, _] in ENDS {
        for tags in tags() {
            for (name, frame) in [
                ("udp", udp(from, ours)),
                (
                    "empty udp",
                    Frame {
                        payload: Vec::new(),
                        ..udp(from, ours)
                    },
                ),
                ("syn", tcp(from, ours, SYN)),
                ("syn ack", tcp(from, ours, SYN | ACK)),
                ("ack", tcp(from, ours, ACK)),
                ("fin ack", tcp(from, ours, ACK | 1)),
                ("rst", tcp(from, ours, 4)),
            ] {
                let name = format!("{name} from {from}, {} tags", tags.len());
                frames.push((
                    name,
                    Frame {
                        tags: tags.clone(),
                        ..frame
                    },
                ));
            }
        }
    }
    for words in 1..=10 {
        let frame = Frame {
            ipv4_options: words,
            ..udp(ENDS[0][0], ENDS[0][1])
        };
        frames.push((format!("{words} words of IPv4 options"), frame));
    }
    for count in 1..=EXTENSION_HEADERS {
        for units in [1, 3, 32] {
            let extensions = vec![options(units); count];
            let frame = Frame {
                extensions,
                ..tcp(ENDS[1][0], ENDS[1][1], SYN)
            };
            frames.push((format!("{count} extension headers of {units} units"), frame));
        }
    }
    for kind in [0, 43, 60, 135] {
        let extensions = vec![(kind, options(2).1)];
        frames.push((
            format!("extension header {kind}"),
            Frame {
                extensions,
                ..udp(ENDS[1][0], ENDS[1][1])
            },
        ));
    }
    // The length of an authentication header counts words of 4 bytes, less 2.
    let mut authentication = vec![2];
    authentication.resize(15, 0);
    let extensions = vec![(51, authentication)];
    frames.push((
        "authentication header".to_owned(),
        Frame {
            extensions,
            ..udp(ENDS[1][0], ENDS[1][1])
        },
    ));
    let extensions = vec![fragment(0, false)];
    frames.push((
        "atomic fragment".to_owned(),
        Frame {
            extensions,
            ..udp(ENDS[1][0], ENDS[1][1])
        },
    ));
    frames
}

/// All cases.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name: String, frame: Vec<u8>, expected| {
        cases.push(Case {
            name,
            frame,
            expected,
        })
    };
    for (name, frame) in wholes() {
        let bytes = frame.bytes();
        let mut padded = bytes.clone();
        padded.resize(bytes.len() + 18, 0);
        add(format!("{name}, padded"), padded, Expected::Ours);
        let mut other = frame.clone();
        other.destination.set_port(9);
        add(
            format!("{name}, to another port"),
            other.bytes(),
            Expected::NotOurs,
        );
        // Cut anywhere: either a header or the length that IP states is not there. Ethernet itself is always whole.
        for length in 14..bytes.len() {
            let cut = bytes[..length].to_vec();
            add(
                format!("{name}, cut to {length}"),
                cut,
                Expected::Unread(Outcome::Truncated),
            );
        }
        // A packet that ends on purpose within the TCP or UDP header: IP's length says so.
        let network = frame.network();
        for length in frame.transport()..frame.headers() {
            let mut short = bytes[..length].to_vec();
            let stated = (length - network - if frame.source.is_ipv4() { 0 } else { 40 }) as u16;
            let at = network + if frame.source.is_ipv4() { 2 } else { 4 };
            short[at..at + 2].copy_from_slice(&stated.to_be_bytes());
            add(
                format!("{name}, said to end at {length}"),
                short,
                Expected::Unread(Outcome::Truncated),
            );
        }
        add(name, bytes, Expected::Ours);
    }
    hostile(&mut add);
    cases
}

fn hostile(add: &mut impl FnMut(String, Vec<u8>, Expected)) {
    for [from, ours, _] in ENDS {
        // Every combination of flags: some cannot be.
        for flags in 0..=0xff_u8 {
            let (fin, syn, rst, ack) = (
                flags & 1 != 0,
                flags & 2 != 0,
                flags & 4 != 0,
                flags & 16 != 0,
            );
            let malformed = !(fin || syn || rst || ack) || syn && (fin || rst);
            let expected = if malformed {
                Expected::Malformed
            } else {
                Expected::Ours
            };
            add(
                format!("flags {flags:#x} from {from}"),
                tcp(from, ours, flags).bytes(),
                expected,
            );
        }
        // Every length that a TCP header can state.
        for words in 0..16_u8 {
            let frame = tcp(from, ours, ACK);
            let mut bytes = frame.bytes();
            bytes[frame.transport() + 12] = words << 4;
            let length = usize::from(words) * 4;
            let fits = (20..=20 + frame.payload.len()).contains(&length);
            let expected = if fits {
                Expected::Ours
            } else {
                Expected::Malformed
            };
            add(
                format!("a TCP header of {length} from {from}"),
                bytes,
                expected,
            );
        }
        // Every length that a datagram of 13 bytes can state, and the largest.
        for length in (0..=16).chain([u16::MAX]) {
            let frame = udp(from, ours);
            let mut bytes = frame.bytes();
            let at = frame.transport() + 4;
            bytes[at..at + 2].copy_from_slice(&length.to_be_bytes());
            let expected = if (8..=13).contains(&length) {
                Expected::Ours
            } else {
                Expected::Malformed
            };
            add(
                format!("a datagram of {length} from {from}"),
                bytes,
                expected,
            );
        }
        // Protocols that are neither TCP nor UDP, nor followed.
        for protocol in [1, 2, 4, 41, 47, 50, 58, 59, 132, 255] {
            let frame = udp(from, ours);
            let mut bytes = frame.bytes();
            let at = frame.network() + if frame.source.is_ipv4() { 9 } else { 6 };
            bytes[at] = protocol;
            add(
                format!("protocol {protocol} from {from}"),
                bytes,
                Expected::Unread(Outcome::NotTcpUdp),
            );
        }
        // Every version and header length.
        for first in 0..=0xff_u8 {
            let frame = udp(from, ours);
            let mut bytes = frame.bytes();
            let network = frame.network();
            bytes[network] = first;
            let expected = if frame.source.is_ipv6() {
                if first >> 4 == 6 {
                    Expected::Ours
                } else {
                    Expected::Unread(Outcome::BadHeader)
                }
            } else if first == 0x45 {
                Expected::Ours
            } else if first >> 4 == 4 && first & 0x0f > 5 && usize::from(first & 0x0f) * 4 + 8 <= 33
            {
                // The header takes the ports in: those behind it are the payload's.
                Expected::NotOurs
            } else if first >> 4 == 4 && first & 0x0f > 5 && usize::from(first & 0x0f) * 4 <= 33 {
                Expected::Unread(Outcome::Truncated)
            } else {
                Expected::Unread(Outcome::BadHeader)
            };
            add(
                format!("IP that begins with {first:#x} from {from}"),
                bytes,
                expected,
            );
        }
    }
    fragments(add);
    let third = Frame {
        tags: vec![PROVIDER_TAG, TAG, TAG],
        ..udp(ENDS[0][0], ENDS[0][1])
    };
    add(
        "three tags".to_owned(),
        third.bytes(),
        Expected::Unread(Outcome::NotIp),
    );
    for protocol in [0x0000_u16, 0x05ff, 0x0806, 0x8847, 0x88cc, 0xffff] {
        let mut bytes = udp(ENDS[0][0], ENDS[0][1]).bytes();
        bytes[12..14].copy_from_slice(&protocol.to_be_bytes());
        add(
            format!("ethertype {protocol:#x}"),
            bytes,
            Expected::Unread(Outcome::NotIp),
        );
    }
    for count in EXTENSION_HEADERS + 1..EXTENSION_HEADERS + 20 {
        let frame = Frame {
            extensions: vec![options(1); count],
            ..udp(ENDS[1][0], ENDS[1][1])
        };
        add(
            format!("{count} extension headers"),
            frame.bytes(),
            Expected::Unread(Outcome::TooDeep),
        );
    }
    // An extension header that is longer than the packet.
    for units in 3..=255_u8 {
        let frame = Frame {
            extensions: vec![options(1)],
            ..udp(ENDS[1][0], ENDS[1][1])
        };
        let mut bytes = frame.bytes();
        let at = frame.network() + 40;
        bytes[at + 1] = units;
        add(
            format!("an extension header of {units} units"),
            bytes,
            Expected::Unread(Outcome::Truncated),
        );
    }
}

fn fragments(add: &mut impl FnMut(String, Vec<u8>, Expected)) {
    let more = 0x2000;
    for [from, ours, other] in ENDS {
        let is_ipv4 = from.contains('.');
        for offset in [1, 2, 185, 0x1fff] {
            for follows in [false, true] {
                let frame = if is_ipv4 {
                    Frame {
                        fragment: offset | if follows { more } else { 0 },
                        ..udp(from, ours)
                    }
                } else {
                    Frame {
                        extensions: vec![fragment(offset, follows)],
                        ..udp(from, ours)
                    }
                };
                add(
                    format!("fragment at {offset} from {from}, {follows}"),
                    frame.bytes(),
                    Expected::Unread(Outcome::Fragment),
                );
            }
        }
        let first = |frame: Frame| match is_ipv4 {
            true => Frame {
                fragment: more,
                ..frame
            },
            false => Frame {
                extensions: vec![fragment(0, true)],
                ..frame
            },
        };
        add(
            format!("first fragment from {from}"),
            first(udp(from, ours)).bytes(),
            Expected::Ours,
        );
        add(
            format!("first fragment, not ours, from {from}"),
            first(udp(from, other)).bytes(),
            Expected::NotOurs,
        );
        // The datagram is longer than its first fragment: that is what fragments are for.
        let frame = first(udp(from, ours));
        let mut bytes = frame.bytes();
        let at = frame.transport() + 4;
        bytes[at..at + 2].copy_from_slice(&4_000_u16.to_be_bytes());
        add(
            format!("first fragment of a long datagram from {from}"),
            bytes,
            Expected::Ours,
        );
        // TCP's flags hidden in the second.
        for (to, expected) in [(ours, Expected::Malformed), (other, Expected::NotOurs)] {
            let frame = first(Frame {
                payload: Vec::new(),
                ..tcp(from, to, SYN)
            });
            let mut bytes = frame.bytes();
            let end = frame.transport() + 8;
            bytes.truncate(end);
            let network = frame.network();
            let (at, stated) = if is_ipv4 {
                (network + 2, end - network)
            } else {
                (network + 4, end - network - 40)
            };
            bytes[at..at + 2].copy_from_slice(&(stated as u16).to_be_bytes());
            add(
                format!("tiny fragment from {from} to {to}"),
                bytes,
                expected,
            );
        }
    }
}
