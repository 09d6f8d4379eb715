//! What clients are sent, in the version that they speak.

use mqtt_proto::v5::{
    Connack, ConnackProperties, ConnectReasonCode, Disconnect, DisconnectReasonCode, Puback,
    PubackReasonCode, PublishProperties, Suback, SubscribeReasonCode, Unsuback, UnsubackProperties,
    UnsubscribeReasonCode, UserProperty,
};
use mqtt_proto::{Pid, QoS, QosPid, TopicName, v3, v5};

use super::packets::{Publish, Version};

/// What a client is told at its beginning.
#[derive(Debug, Clone, Default)]
pub(super) struct Offer {
    pub(super) receive_max: u16,
    pub(super) packet_max: usize,
    /// Its name, if it had none.
    pub(super) client: Option<String>,
    /// Seconds, if other than it said.
    pub(super) keep_alive: Option<u16>,
}

impl Version {
    /// The answer to a connection that is taken in.
    pub(super) fn connected(self, offer: Offer) -> Vec<u8> {
        match self {
            Self::Three => bytes_3(&v3::Packet::Connack(v3::Connack {
                session_present: false,
                code: v3::ConnectReturnCode::Accepted,
            })),
            Self::Five => {
                let mut connack = Connack::new(false, ConnectReasonCode::Success);
                connack.properties = ConnackProperties {
                    session_expiry_interval: Some(0),
                    receive_max: Some(offer.receive_max),
                    max_qos: Some(QoS::Level1),
                    retain_available: Some(false),
                    max_packet_size: u32::try_from(offer.packet_max).ok(),
                    assigned_client_id: offer.client.map(Into::into),
                    wildcard_subscription_available: Some(true),
                    subscription_id_available: Some(false),
                    shared_subscription_available: Some(false),
                    server_keep_alive: offer.keep_alive,
                    ..ConnackProperties::default()
                };
                bytes_5(&connack.into())
            }
        }
    }

    /// The answer to a connection that is refused, with a reason for those who can be told.
    pub(super) fn refused(self, code: ConnectReasonCode, reason: &str) -> Vec<u8> {
        match self {
            Self::Three => bytes_3(&v3::Packet::Connack(v3::Connack {
                session_present: false,
                code: match code {
                    ConnectReasonCode::UnsupportedProtocolVersion => {
                        v3::ConnectReturnCode::UnacceptableProtocolVersion
                    }
                    ConnectReasonCode::ClientIdentifierNotValid => {
                        v3::ConnectReturnCode::IdentifierRejected
                    }
                    ConnectReasonCode::BadUserNameOrPassword => {
                        v3::ConnectReturnCode::BadUserNameOrPassword
                    }
                    ConnectReasonCode::ServerUnavailable => {
                        v3::ConnectReturnCode::ServerUnavailable
                    }
                    _ => v3::ConnectReturnCode::NotAuthorized,
                },
            })),
            Self::Five => {
                let mut connack = Connack::new(false, code);
                connack.properties.reason_string = Some(reason.into());
                bytes_5(&connack.into())
            }
        }
    }

    /// The receipt of a message. Version 3.1.1 has none that says no: the message is taken as received there.
    pub(super) fn puback(self, id: Pid, code: PubackReasonCode) -> Vec<u8> {
        match self {
            Self::Three => bytes_3(&v3::Packet::Puback(id)),
            Self::Five => bytes_5(&Puback::new(id, code).into()),
        }
    }

    /// The answer to a subscription.
    pub(super) fn suback(self, id: Pid, codes: Vec<SubscribeReasonCode>) -> Vec<u8> {
        match self {
            Self::Three => {
                let code = |code: SubscribeReasonCode| match code {
                    SubscribeReasonCode::GrantedQoS0 => v3::SubscribeReturnCode::MaxLevel0,
                    SubscribeReasonCode::GrantedQoS1 => v3::SubscribeReturnCode::MaxLevel1,
                    _ => v3::SubscribeReturnCode::Failure,
                };
                let codes: Vec<_> = codes.into_iter().map(code).collect();
                let count = codes.len();
                let mut bytes = bytes_3(&v3::Packet::Suback(v3::Suback::new(id, codes)));
                // The codec writes a failure as 3, which is none of the codes (3.9.3).
                let from = bytes.len().saturating_sub(count);
                for byte in bytes.iter_mut().skip(from).filter(|byte| **byte == 3) {
                    *byte = 0x80;
                }
                bytes
            }
            Self::Five => bytes_5(&Suback::new(id, codes).into()),
        }
    }

    /// The answer to the end of subscriptions, by whether there was each.
    pub(super) fn unsuback(self, id: Pid, there: &[bool]) -> Vec<u8> {
        match self {
            Self::Three => bytes_3(&v3::Packet::Unsuback(id)),
            Self::Five => {
                let code = |there: &bool| match there {
                    true => UnsubscribeReasonCode::Success,
                    false => UnsubscribeReasonCode::NoSubscriptionExisted,
                };
                let unsuback = Unsuback {
                    pid: id,
                    properties: UnsubackProperties::default(),
                    topics: there.iter().map(code).collect(),
                };
                bytes_5(&unsuback.into())
            }
        }
    }

    pub(super) fn pong(self) -> Vec<u8> {
        bytes_3(&v3::Packet::Pingresp)
    }

    /// Why the connection ends, for those who can be told.
    pub(super) fn disconnect(self, code: DisconnectReasonCode) -> Option<Vec<u8>> {
        (self == Self::Five).then(|| bytes_5(&Disconnect::new(code).into()))
    }

    /// A message; none if its topic is none, or it is too long for MQTT.
    pub(super) fn publish(self, qos: QosPid, message: Publish) -> Option<Vec<u8>> {
        let topic = TopicName::try_from(&*message.topic).ok()?;
        match self {
            Self::Three => {
                let publish = v3::Publish::new(qos, topic, message.payload);
                encoded_3(&v3::Packet::Publish(publish))
            }
            Self::Five => {
                let mut publish = v5::Publish::new(qos, topic, message.payload);
                let property = |(name, value): (String, String)| UserProperty {
                    name: name.into(),
                    value: value.into(),
                };
                let user_properties = message.user_properties.into_iter();
                publish.properties = PublishProperties {
                    correlation_data: message.correlation,
                    content_type: message.content_type.map(Into::into),
                    user_properties: user_properties.map(property).collect(),
                    ..PublishProperties::default()
                };
                encoded_5(&publish.into())
            }
        }
    }
}

/// Packets of the server's own are far below MQTT's limit, 256 MiB.
pub(super) fn bytes_3(packet: &v3::Packet) -> Vec<u8> {
    encoded_3(packet).unwrap_or_default()
}

pub(super) fn bytes_5(packet: &v5::Packet) -> Vec<u8> {
    encoded_5(packet).unwrap_or_default()
}

fn encoded_3(packet: &v3::Packet) -> Option<Vec<u8>> {
    let bytes = packet.encode().ok()?;
    Some(bytes.as_ref().to_vec())
}

fn encoded_5(packet: &v5::Packet) -> Option<Vec<u8>> {
    let bytes = packet.encode().ok()?;
    Some(bytes.as_ref().to_vec())
}
