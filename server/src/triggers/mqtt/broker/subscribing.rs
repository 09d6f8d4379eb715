//! What is subscribed to, at a new connection and when topics change.

use mqtt_proto::v5::DisconnectReasonCode as Why;

use super::awaited::Answer;
use super::connection::{ANSWER, Connection};
use super::session::{Ended, Session};
use crate::model::{MqttTopic, topics};

impl Session {
    /// Subscribes to these topics, and to no others: first to new ones, so that nothing is missed.
    pub(super) async fn subscribe(
        &mut self,
        connection: &mut Connection,
        topics: &[MqttTopic],
        is_new: bool,
    ) -> Result<(), Ended> {
        let wanted = widest(topics);
        let is_known = |filter: &String| !is_new && self.subscribed.contains(filter);
        let new: Vec<_> = wanted
            .iter()
            .filter(|filter| !is_known(filter))
            .cloned()
            .collect();
        let gone = self
            .subscribed
            .iter()
            .filter(|filter| !wanted.contains(filter));
        let gone: Vec<_> = gone.cloned().collect();
        let version = connection.version;
        let invalid = || Ended::Because(Why::TopicFilterInvalid);
        self.subscribed = wanted;
        if !new.is_empty() {
            let id = self.unconfirmed.next_id();
            let packet = version.subscribe(id, &new).ok_or_else(invalid)?;
            connection.asked.push((id, new));
            connection.awaited.add(Answer::Suback(id), ANSWER);
            connection.send(&packet).await?;
        }
        if !gone.is_empty() {
            let id = self.unconfirmed.next_id();
            let packet = version.unsubscribe(id, &gone).ok_or_else(invalid)?;
            connection.awaited.add(Answer::Unsuback(id), ANSWER);
            connection.send(&packet).await?;
        }
        Ok(())
    }
}

/// The filters that no other covers: a message that fits several comes once.
fn widest(topics: &[MqttTopic]) -> Vec<String> {
    let mut widest: Vec<String> = Vec::new();
    for MqttTopic { filter, .. } in topics {
        if widest.iter().any(|other| topics::covers(other, filter)) {
            continue;
        }
        widest.retain(|other| !topics::covers(filter, other));
        widest.push(filter.clone());
    }
    widest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_that_others_cover_are_not_subscribed_to() {
        let topics = |filters: &[&str]| -> Vec<MqttTopic> {
            let topic = |filter: &&str| MqttTopic {
                filter: (*filter).to_owned(),
                response_topic: None,
                route: None,
            };
            filters.iter().map(topic).collect()
        };
        let of = |filters: &[&str]| widest(&topics(filters));
        assert_eq!(of(&["house/+/door", "house/#", "a", "a"]), ["house/#", "a"]);
        assert_eq!(of(&["house/#", "house/+/door"]), ["house/#"]);
        assert_eq!(of(&["a/+", "+/b"]), ["a/+", "+/b"]);
        assert!(of(&[]).is_empty());
    }
}
