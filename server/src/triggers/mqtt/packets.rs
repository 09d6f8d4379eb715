//! MQTT's packets, whichever version a client speaks: what comes. `answers.rs` has what is sent.

use bytes::Bytes;
use mqtt_proto::{Pid, QoS, QosPid, v3, v5};

/// What a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// 3.1.1.
    Three,
    /// 5.
    Five,
}

/// How a client introduces itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Connect {
    pub(super) version: Version,
    pub(super) client: String,
    pub(super) username: Option<String>,
    pub(super) password: Option<Bytes>,
    /// Seconds; 0 for none.
    pub(super) keep_alive: u16,
    pub(super) has_will: bool,
    /// Whether it wants another kind of authentication.
    pub(super) has_method: bool,
    /// Whether it wants to go on with a session of which it has no name.
    pub(super) is_nameless_session: bool,
    /// Most publications that it takes without confirming one.
    pub(super) receive_max: u16,
    /// Most bytes of a packet that it takes.
    pub(super) packet_max: Option<u32>,
}

/// A message for a topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Publish {
    pub(super) topic: String,
    pub(super) payload: Bytes,
    pub(super) retain: bool,
    pub(super) response_topic: Option<String>,
    pub(super) correlation: Option<Bytes>,
    pub(super) content_type: Option<String>,
    pub(super) user_properties: Vec<(String, String)>,
    pub(super) has_alias: bool,
}

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Packet {
    Publish(QosPid, Publish),
    Puback(Pid),
    Subscribe {
        id: Pid,
        filters: Vec<(String, QoS)>,
        has_identifier: bool,
    },
    Unsubscribe {
        id: Pid,
        filters: Vec<String>,
    },
    Ping,
    Disconnect,
    /// What a client does not send, or not here.
    Unexpected,
}

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoConnect {
    /// It is no MQTT; nothing is answered.
    Malformed,
    /// It is another version.
    Version,
}

/// The first packet of a client.
pub(super) fn connect(frame: &[u8]) -> Result<Connect, NoConnect> {
    if frame.first() != Some(&0x10) {
        return Err(NoConnect::Malformed);
    }
    match v3::Packet::decode(frame) {
        Ok(Some(v3::Packet::Connect(connect))) => {
            // MQIsdp: 3.1.
            if connect.protocol != mqtt_proto::Protocol::V311 {
                return Err(NoConnect::Version);
            }
            Ok(Connect {
                version: Version::Three,
                is_nameless_session: connect.client_id.is_empty() && !connect.clean_session,
                client: connect.client_id.to_string(),
                username: connect.username.map(|name| name.to_string()),
                password: connect.password,
                keep_alive: connect.keep_alive,
                has_will: connect.last_will.is_some(),
                has_method: false,
                receive_max: u16::MAX,
                packet_max: None,
            })
        }
        Err(mqtt_proto::Error::UnexpectedProtocol(mqtt_proto::Protocol::V500)) => connect_5(frame),
        Err(mqtt_proto::Error::InvalidProtocol(..)) => Err(NoConnect::Version),
        _ => Err(NoConnect::Malformed),
    }
}

fn connect_5(frame: &[u8]) -> Result<Connect, NoConnect> {
    let Ok(Some(v5::Packet::Connect(connect))) = v5::Packet::decode(frame) else {
        return Err(NoConnect::Malformed);
    };
    let properties = connect.properties;
    Ok(Connect {
        version: Version::Five,
        client: connect.client_id.to_string(),
        username: connect.username.map(|name| name.to_string()),
        password: connect.password,
        keep_alive: connect.keep_alive,
        has_will: connect.last_will.is_some(),
        has_method: properties.auth_method.is_some(),
        is_nameless_session: false,
        receive_max: properties.receive_max.unwrap_or(u16::MAX),
        packet_max: properties.max_packet_size,
    })
}

impl Version {
    /// What a packet says; none if it is malformed.
    pub(super) fn read(self, frame: &[u8]) -> Option<Packet> {
        match self {
            Self::Three => read_3(v3::Packet::decode(frame).ok()??),
            Self::Five => read_5(v5::Packet::decode(frame).ok()??),
        }
    }
}

fn read_3(packet: v3::Packet) -> Option<Packet> {
    Some(match packet {
        v3::Packet::Publish(publish) => Packet::Publish(
            publish.qos_pid,
            Publish {
                topic: publish.topic_name.to_string(),
                payload: publish.payload,
                retain: publish.retain,
                ..Publish::default()
            },
        ),
        v3::Packet::Puback(id) => Packet::Puback(id),
        v3::Packet::Subscribe(subscribe) => Packet::Subscribe {
            id: subscribe.pid,
            filters: subscribe
                .topics
                .into_iter()
                .map(|(filter, qos)| (filter.to_string(), qos))
                .collect(),
            has_identifier: false,
        },
        v3::Packet::Unsubscribe(unsubscribe) => Packet::Unsubscribe {
            id: unsubscribe.pid,
            filters: unsubscribe.topics.iter().map(ToString::to_string).collect(),
        },
        v3::Packet::Pingreq => Packet::Ping,
        v3::Packet::Disconnect => Packet::Disconnect,
        _ => Packet::Unexpected,
    })
}

fn read_5(packet: v5::Packet) -> Option<Packet> {
    Some(match packet {
        v5::Packet::Publish(publish) => {
            let properties = publish.properties;
            let user_properties = properties.user_properties.into_iter();
            Packet::Publish(
                publish.qos_pid,
                Publish {
                    topic: publish.topic_name.to_string(),
                    payload: publish.payload,
                    retain: publish.retain,
                    response_topic: properties.response_topic.map(|topic| topic.to_string()),
                    correlation: properties.correlation_data,
                    content_type: properties.content_type.map(|text| text.to_string()),
                    user_properties: user_properties
                        .map(|one| (one.name.to_string(), one.value.to_string()))
                        .collect(),
                    has_alias: properties.topic_alias.is_some(),
                },
            )
        }
        v5::Packet::Puback(puback) => Packet::Puback(puback.pid),
        v5::Packet::Subscribe(subscribe) => Packet::Subscribe {
            id: subscribe.pid,
            filters: subscribe
                .topics
                .into_iter()
                .map(|(filter, options)| (filter.to_string(), options.max_qos))
                .collect(),
            has_identifier: subscribe.properties.subscription_id.is_some(),
        },
        v5::Packet::Unsubscribe(unsubscribe) => Packet::Unsubscribe {
            id: unsubscribe.pid,
            filters: unsubscribe.topics.iter().map(ToString::to_string).collect(),
        },
        v5::Packet::Pingreq => Packet::Ping,
        v5::Packet::Disconnect(_) => Packet::Disconnect,
        _ => Packet::Unexpected,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: &[u8] = b"\x10\x0f\0\x04MQTT\x05\x02\0\x3c\0\0\x02ab";

    #[test]
    fn both_versions_introduce_themselves() {
        let three = connect(b"\x10\x0e\0\x04MQTT\x04\x02\0\x3c\0\x02ab").expect("a client");
        assert_eq!(
            (three.version, three.client.as_str()),
            (Version::Three, "ab")
        );
        let five = connect(FIVE).expect("a client");
        assert_eq!((five.version, five.keep_alive), (Version::Five, 60));
        for (frame, why) in [
            (
                &b"\x10\x0f\0\x04MQTT\x06\x02\0\x3c\0\0\x02ab"[..],
                NoConnect::Version,
            ),
            (
                b"\x10\x10\0\x06MQIsdp\x03\x02\0\x3c\0\x02ab",
                NoConnect::Version,
            ),
            (b"\xc0\0", NoConnect::Malformed),
            (b"\x10\x02\0\x04", NoConnect::Malformed),
            (&FIVE[..14], NoConnect::Malformed),
        ] {
            assert_eq!(connect(frame), Err(why), "{frame:02x?}");
        }
    }

    #[test]
    fn messages_are_the_same_in_both() {
        for version in [Version::Three, Version::Five] {
            let message = Publish {
                topic: "a/b".into(),
                payload: Bytes::from_static(b"hi"),
                ..Publish::default()
            };
            let qos = QosPid::Level1(Pid::try_from(7).expect("an id"));
            let bytes = version.publish(qos, message.clone()).expect("a packet");
            assert_eq!(version.read(&bytes), Some(Packet::Publish(qos, message)));
            assert_eq!(version.read(&bytes[..5]), None);
            let ping = version.read(&[0xc0, 0]);
            assert_eq!(ping, Some(Packet::Ping));
        }
        let wrong = Publish {
            topic: "a/#".into(),
            ..Publish::default()
        };
        assert_eq!(Version::Five.publish(QosPid::Level0, wrong), None);
    }

    /// A packet of this kind whose length is right.
    fn framed(first: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        let mut rest = body.len();
        while rest > 127 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes.extend(body);
        bytes
    }

    fn reads(bytes: &[u8]) {
        let _ = connect(bytes);
        for version in [Version::Three, Version::Five] {
            let Some(Packet::Publish(qos, message)) = version.read(bytes) else {
                continue;
            };
            // What was read can be sent, and says the same.
            let sent = Publish {
                retain: false,
                response_topic: None,
                has_alias: false,
                ..message
            };
            let bytes = version.publish(qos, sent.clone()).expect("a packet");
            assert_eq!(version.read(&bytes), Some(Packet::Publish(qos, sent)));
        }
    }

    #[test]
    fn arbitrary_packets() {
        bolero::check!()
            .with_iterations(20_000)
            .with_max_len(512)
            .for_each(|input: &[u8]| {
                reads(input);
                let Some((first, body)) = input.split_first() else {
                    return;
                };
                reads(&framed(*first, body));
                // A message, with a short topic and text as properties, or whatever the rest is.
                let topic = [&[0, 1, b'a'], body].concat();
                reads(&framed(0x30 | first & 0x0f, &topic));
                for version in [3, 4, 5] {
                    let head = [&b"\0\x04MQTT"[..], &[version], body].concat();
                    reads(&framed(0x10, &head));
                }
            });
    }
}
