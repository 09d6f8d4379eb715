//! MQTT's packets as a client has them: what a broker is sent, and what it says.

use bytes::Bytes;
use mqtt_proto::v5::{RetainHandling, SubscriptionOptions};
use mqtt_proto::{Pid, Protocol, QoS, QosPid, TopicFilter, v3, v5};

use crate::triggers::mqtt::answers::{bytes_3, bytes_5};
use crate::triggers::mqtt::packets::{Packet, Publish, Version};

/// Most characters of a broker's own words that are shown.
const WORDS_MAX: usize = 200;

/// How a client introduces itself.
pub(super) struct Introduction<'a> {
    pub(super) client: &'a str,
    pub(super) username: Option<&'a str>,
    pub(super) password: Option<&'a str>,
    pub(super) keep_alive: u16,
    /// Whether a session that the broker has of it is to be forgotten.
    pub(super) is_clean: bool,
    /// Seconds that the broker keeps the session without a connection.
    pub(super) session_expiry: u32,
    pub(super) receive_max: u16,
    pub(super) packet_max: u32,
}

/// What a broker answers to an introduction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Welcome {
    /// Whether it has kept the session.
    pub(super) is_known: bool,
    /// Most messages that it takes without confirming one.
    pub(super) receive_max: u16,
    /// Most bytes of a packet that it takes.
    pub(super) packet_max: usize,
    /// The best quality that it has.
    pub(super) qos_max: QoS,
    /// The keep-alive that it wants, in seconds.
    pub(super) keep_alive: Option<u16>,
}

/// Why a broker has not taken a client in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotWelcome {
    /// It speaks another version.
    Version,
    /// For this reason.
    Refused(String),
    /// It is no MQTT.
    Malformed,
}

/// What a broker says then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Incoming {
    Message(QosPid, Publish),
    Confirmed(Pid),
    /// With the reason why not, for each filter that was refused.
    Subscribed(Pid, Vec<Option<String>>),
    Unsubscribed(Pid),
    Pong,
    Goodbye(String),
    /// What a broker does not send, or not here.
    Unexpected,
}

impl Version {
    /// As people call it.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Three => "3.1.1",
            Self::Five => "5",
        }
    }

    /// The first packet of a client.
    pub(super) fn connect(self, of: &Introduction<'_>) -> Vec<u8> {
        let password = of
            .password
            .map(|text| Bytes::copy_from_slice(text.as_bytes()));
        match self {
            Self::Three => bytes_3(&v3::Packet::Connect(v3::Connect {
                protocol: Protocol::V311,
                clean_session: of.is_clean,
                keep_alive: of.keep_alive,
                client_id: of.client.into(),
                last_will: None,
                username: of.username.map(Into::into),
                password,
            })),
            Self::Five => {
                let mut connect = v5::Connect::new(of.client.into(), of.keep_alive);
                connect.clean_start = of.is_clean;
                connect.username = of.username.map(Into::into);
                connect.password = password;
                connect.properties = v5::ConnectProperties {
                    session_expiry_interval: Some(of.session_expiry),
                    receive_max: Some(of.receive_max),
                    max_packet_size: Some(of.packet_max),
                    ..v5::ConnectProperties::default()
                };
                bytes_5(&connect.into())
            }
        }
    }

    /// Subscribes with quality 1; none if a filter is none. In version 5 what the client publishes itself does not come back, and
    /// retained messages come with a new subscription only.
    pub(super) fn subscribe(self, id: Pid, filters: &[String]) -> Option<Vec<u8>> {
        let filters = filters_of(filters)?;
        Some(match self {
            Self::Three => {
                let all = filters.into_iter().map(|filter| (filter, QoS::Level1));
                bytes_3(&v3::Packet::Subscribe(v3::Subscribe::new(
                    id,
                    all.collect(),
                )))
            }
            Self::Five => {
                let options = SubscriptionOptions {
                    max_qos: QoS::Level1,
                    no_local: true,
                    retain_as_published: true,
                    retain_handling: RetainHandling::SendAtSubscribeIfNotExist,
                };
                let all = filters.into_iter().map(|filter| (filter, options));
                bytes_5(&v5::Subscribe::new(id, all.collect()).into())
            }
        })
    }

    /// Unsubscribes; none if a filter is none.
    pub(super) fn unsubscribe(self, id: Pid, filters: &[String]) -> Option<Vec<u8>> {
        let filters = filters_of(filters)?;
        Some(match self {
            Self::Three => {
                let all = v3::Unsubscribe::new(id, filters);
                bytes_3(&v3::Packet::Unsubscribe(all))
            }
            Self::Five => bytes_5(&v5::Unsubscribe::new(id, filters).into()),
        })
    }

    /// Asks for a sign of life.
    pub(super) fn ping(self) -> Vec<u8> {
        bytes_3(&v3::Packet::Pingreq)
    }

    /// The last packet of a client; with it the broker forgets the session, or keeps it as was said.
    pub(super) fn leave(self, forget: bool) -> Vec<u8> {
        match self {
            Self::Three => bytes_3(&v3::Packet::Disconnect),
            Self::Five => {
                let mut disconnect = v5::Disconnect::new_normal();
                disconnect.properties.session_expiry_interval = forget.then_some(0);
                bytes_5(&disconnect.into())
            }
        }
    }

    /// What a broker answers to an introduction.
    pub(super) fn welcome(self, frame: &[u8]) -> Result<Welcome, NotWelcome> {
        // As 3.1.1 says that it knows no other version (3.1.2.2).
        if frame == [0x20, 2, 0, 1] {
            return Err(NotWelcome::Version);
        }
        match self {
            Self::Three => {
                let Ok(Some(v3::Packet::Connack(connack))) = v3::Packet::decode(frame) else {
                    return Err(NotWelcome::Malformed);
                };
                match connack.code {
                    v3::ConnectReturnCode::Accepted => Ok(Welcome {
                        is_known: connack.session_present,
                        receive_max: u16::MAX,
                        packet_max: usize::MAX,
                        qos_max: QoS::Level2,
                        keep_alive: None,
                    }),
                    code => Err(NotWelcome::Refused(format!("{code:?}"))),
                }
            }
            Self::Five => {
                let Ok(Some(v5::Packet::Connack(connack))) = v5::Packet::decode(frame) else {
                    return Err(NotWelcome::Malformed);
                };
                let properties = connack.properties;
                match connack.reason_code {
                    v5::ConnectReasonCode::Success => Ok(Welcome {
                        is_known: connack.session_present,
                        receive_max: properties.receive_max.unwrap_or(u16::MAX),
                        packet_max: properties
                            .max_packet_size
                            .map_or(usize::MAX, |most| most as usize),
                        qos_max: properties.max_qos.unwrap_or(QoS::Level2),
                        keep_alive: properties.server_keep_alive,
                    }),
                    v5::ConnectReasonCode::UnsupportedProtocolVersion => Err(NotWelcome::Version),
                    code => Err(NotWelcome::Refused(reason(
                        &format!("{code:?}"),
                        properties.reason_string.as_deref(),
                    ))),
                }
            }
        }
    }

    /// What a broker says then; none if it is malformed.
    pub(super) fn hear(self, frame: &[u8]) -> Option<Incoming> {
        let of_broker = match (self, frame.first()? >> 4) {
            (Self::Three, 9 | 11 | 13 | 14) => hear_3(v3::Packet::decode(frame).ok()??),
            (Self::Five, 9 | 11 | 13 | 14) => hear_5(v5::Packet::decode(frame).ok()??),
            _ => match self.read(frame)? {
                Packet::Publish(qos, message) => Incoming::Message(qos, message),
                Packet::Puback(id) => Incoming::Confirmed(id),
                _ => Incoming::Unexpected,
            },
        };
        Some(of_broker)
    }
}

fn hear_3(packet: v3::Packet) -> Incoming {
    match packet {
        v3::Packet::Suback(suback) => {
            let refused = |code: &v3::SubscribeReturnCode| {
                let is_refused = matches!(code, v3::SubscribeReturnCode::Failure);
                is_refused.then(|| "Failure".to_owned())
            };
            let all = suback.topics.iter().map(refused).collect();
            Incoming::Subscribed(suback.pid, all)
        }
        v3::Packet::Unsuback(id) => Incoming::Unsubscribed(id),
        v3::Packet::Pingresp => Incoming::Pong,
        _ => Incoming::Unexpected,
    }
}

fn hear_5(packet: v5::Packet) -> Incoming {
    match packet {
        v5::Packet::Suback(suback) => {
            let words = suback.properties.reason_string;
            let refused = |code: &v5::SubscribeReasonCode| {
                let is_refused = *code as u8 >= 0x80;
                is_refused.then(|| reason(&format!("{code:?}"), words.as_deref()))
            };
            let all = suback.topics.iter().map(refused).collect();
            Incoming::Subscribed(suback.pid, all)
        }
        v5::Packet::Unsuback(unsuback) => Incoming::Unsubscribed(unsuback.pid),
        v5::Packet::Pingresp => Incoming::Pong,
        v5::Packet::Disconnect(disconnect) => {
            let code = format!("{:?}", disconnect.reason_code);
            let words = disconnect.properties.reason_string;
            Incoming::Goodbye(reason(&code, words.as_deref()))
        }
        _ => Incoming::Unexpected,
    }
}

/// A code, and the broker's own words if it has some.
fn reason(code: &str, words: Option<&str>) -> String {
    match words {
        None => code.to_owned(),
        Some(words) => {
            let shown = words.chars().filter(|c| !c.is_control());
            format!("{code}, {}", shown.take(WORDS_MAX).collect::<String>())
        }
    }
}

fn filters_of(filters: &[String]) -> Option<Vec<TopicFilter>> {
    let all = filters
        .iter()
        .map(|filter| TopicFilter::try_from(&**filter).ok());
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::triggers::mqtt::packets::connect;

    const BOTH: [Version; 2] = [Version::Three, Version::Five];

    #[test]
    fn introductions_are_what_the_server_side_reads() {
        let of = Introduction {
            client: "hearth",
            username: Some("me"),
            password: Some("secret"),
            keep_alive: 60,
            is_clean: false,
            session_expiry: 9,
            receive_max: 16,
            packet_max: 1 << 18,
        };
        for version in BOTH {
            let read = connect(&version.connect(&of)).expect("an introduction");
            assert_eq!((read.version, read.client.as_str()), (version, "hearth"));
            assert_eq!(read.password.as_deref(), Some(&b"secret"[..]));
            assert!(!read.has_will && !read.has_method);
        }
    }

    #[test]
    fn brokers_welcome_or_do_not() {
        let five = Version::Five
            .welcome(b"\x20\x09\x01\0\x06\x21\0\x0a\x13\0\x1e")
            .expect("fine");
        assert_eq!(
            (five.is_known, five.receive_max, five.keep_alive),
            (true, 10, Some(30))
        );
        assert!(
            Version::Three
                .welcome(&[0x20, 2, 1, 0])
                .expect("fine")
                .is_known
        );
        for version in BOTH {
            assert_eq!(version.welcome(&[0x20, 2, 0, 1]), Err(NotWelcome::Version));
            assert_eq!(version.welcome(b"HTTP/1.1"), Err(NotWelcome::Malformed));
        }
        assert_eq!(
            Version::Three.welcome(&[0x20, 2, 0, 5]),
            Err(NotWelcome::Refused("NotAuthorized".into()))
        );
        assert_eq!(
            Version::Five.welcome(b"\x20\x08\0\x86\x05\x1f\0\x02no"),
            Err(NotWelcome::Refused("BadUserNameOrPassword, no".into()))
        );
        assert_eq!(
            Version::Five.welcome(&[0x20, 3, 0, 0x84, 0]),
            Err(NotWelcome::Version)
        );
    }

    #[test]
    fn both_versions_subscribe_and_are_answered() {
        let id = Pid::try_from(7).expect("an id");
        let filters = ["a/#".to_owned()];
        for version in BOTH {
            let bytes = version.subscribe(id, &filters).expect("a packet");
            let Some(Packet::Subscribe { filters: read, .. }) = version.read(&bytes) else {
                panic!("no subscription");
            };
            assert_eq!(read, [("a/#".to_owned(), QoS::Level1)]);
            let bytes = version.unsubscribe(id, &filters).expect("a packet");
            assert!(matches!(
                version.read(&bytes),
                Some(Packet::Unsubscribe { .. })
            ));
            assert_eq!(version.read(&version.ping()), Some(Packet::Ping));
            for forget in [false, true] {
                let left = version.read(&version.leave(forget));
                assert_eq!(left, Some(Packet::Disconnect));
            }
            let codes = vec![
                v5::SubscribeReasonCode::GrantedQoS1,
                v5::SubscribeReasonCode::NotAuthorized,
            ];
            let Some(Incoming::Subscribed(of, refused)) = version.hear(&version.suback(id, codes))
            else {
                panic!("no answer");
            };
            assert!(of == id && refused[0].is_none() && refused[1].is_some());
            let left = version.hear(&version.unsuback(id, &[true]));
            assert_eq!(left, Some(Incoming::Unsubscribed(id)));
            assert_eq!(version.hear(&version.pong()), Some(Incoming::Pong));
            assert_eq!(version.hear(&version.ping()), Some(Incoming::Unexpected));
        }
        let goodbye = Version::Five.disconnect(v5::DisconnectReasonCode::SessionTakenOver);
        assert_eq!(
            Version::Five.hear(&goodbye.expect("a packet")),
            Some(Incoming::Goodbye("SessionTakenOver".into()))
        );
        assert_eq!(Version::Five.subscribe(id, &["a#".to_owned()]), None);
    }

    #[test]
    fn arbitrary_packets_are_heard() {
        bolero::check!()
            .with_iterations(20_000)
            .with_max_len(256)
            .for_each(|input: &[u8]| {
                for version in BOTH {
                    let _ = version.welcome(input);
                    let _ = version.hear(input);
                    for first in [0x20, 0x40, 0x90, 0xb0, 0xe0] {
                        let length = input.len().min(127) as u8;
                        let framed = [&[first, length], &input[..length.into()]].concat();
                        let _ = version.welcome(&framed);
                        let _ = version.hear(&framed);
                    }
                }
            });
    }
}
