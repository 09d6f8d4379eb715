//! Topics and their filters (MQTT 5, 4.7).

/// Whether a topic fits a filter, which is a valid one.
pub fn fits(filter: &str, topic: &str) -> bool {
    // Topics of the server's own are not for wildcards at their beginning.
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let (mut filter, mut topic) = (filter.split('/'), topic.split('/'));
    loop {
        match (filter.next(), topic.next()) {
            (Some("#"), _) | (None, None) => return true,
            (Some("+"), Some(_)) => {}
            (Some(wanted), Some(level)) if wanted == level => {}
            _ => return false,
        }
    }
}

/// Whether all topics that fit the other filter fit this one, both valid ones.
pub fn covers(filter: &str, other: &str) -> bool {
    if other.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let (mut filter, mut other) = (filter.split('/'), other.split('/'));
    loop {
        match (filter.next(), other.next()) {
            (Some("#"), _) | (None, None) => return true,
            (_, Some("#")) => return false,
            (Some("+"), Some(_)) => {}
            (Some(wanted), Some(level)) if wanted == level => {}
            _ => return false,
        }
    }
}

/// Why this is no filter of a trigger; none if it is one. Blanks would be lost in the console's list of ports.
pub fn wrong_filter(filter: &str) -> Option<&'static str> {
    if filter.is_empty() || filter.len() > LONGEST {
        return Some("must have 1 to 256 bytes");
    }
    if filter.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some("must be without blanks and control characters");
    }
    let levels: Vec<_> = filter.split('/').collect();
    let is_whole = |level: &&str| !level.contains(['+', '#']) || level.len() == 1;
    let last = levels.len() - 1;
    let has_end = levels.iter().position(|level| *level == "#");
    if !levels.iter().all(is_whole) || has_end.is_some_and(|at| at != last) {
        return Some("must have \"+\" and \"#\" as whole levels only, \"#\" as the last one");
    }
    None
}

/// Why this is no topic that answers are published on; none if it is one.
pub fn wrong_response_topic(topic: &str) -> Option<&'static str> {
    if topic.contains(['+', '#']) {
        return Some("must be without \"+\" and \"#\"");
    }
    wrong_filter(topic)
}

/// The topic of an answer, by the setting: `{topic}` and `{client}` stand for those of the message.
pub fn response_topic(setting: &str, topic: &str, client: &str) -> String {
    // A client may have any name; what is a level stays one.
    let client = client.replace(['/', '+', '#', '\0'], "_");
    let mut made = String::with_capacity(setting.len());
    let mut rest = setting;
    while let Some(at) = rest.find('{') {
        made.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("{topic}") {
            made.push_str(topic);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("{client}") {
            made.push_str(&client);
            rest = after;
        } else {
            made.push('{');
            rest = &rest[1..];
        }
    }
    made.push_str(rest);
    made
}

/// Most bytes of a filter, or of the setting of a response topic.
const LONGEST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_have_levels() {
        for (filter, topic, wanted) in [
            ("#", "a/b", true),
            ("#", "$SYS/a", false),
            ("+/a", "$SYS/a", false),
            ("$SYS/#", "$SYS/a", true),
            ("a/+/c", "a/b/c", true),
            ("a/+/c", "a//c", true),
            ("a/+", "a", false),
            ("a/#", "a", true),
            ("a/#", "a/b/c", true),
            ("a/#", "ab", false),
            ("a", "a/b", false),
            ("a/b", "a", false),
        ] {
            assert_eq!(fits(filter, topic), wanted, "{filter} {topic}");
        }
    }

    #[test]
    fn wide_filters_cover_narrow_ones() {
        for (filter, other, wanted) in [
            ("#", "a/b", true),
            ("a/#", "a/+/b", true),
            ("a/#", "a", true),
            ("a/#", "a/#", true),
            ("+/b", "a/b", true),
            ("+/b", "+/b", true),
            ("a/+", "a/#", false),
            ("a/b", "+/b", false),
            ("a/+", "a/b/c", false),
            ("#", "$SYS/#", false),
            ("+", "#", false),
        ] {
            assert_eq!(covers(filter, other), wanted, "{filter} {other}");
        }
    }

    #[test]
    fn what_is_no_filter_says_why() {
        for fine in ["#", "+", "a/+/b/#", "/", "ä"] {
            assert_eq!(wrong_filter(fine), None, "{fine}");
        }
        for wrong in ["", "a b", "a+", "#/a", "a/b#", "++", "a\0"] {
            assert!(wrong_filter(wrong).is_some(), "{wrong}");
        }
        assert!(wrong_filter(&"a".repeat(257)).is_some());
        assert!(wrong_response_topic("a/+").is_some());
        assert_eq!(wrong_response_topic("{topic}/answer"), None);
    }

    #[test]
    fn response_topics_are_made_of_their_setting() {
        let made = |setting| response_topic(setting, "a/b", "c/{topic}#");
        assert_eq!(made("out"), "out");
        assert_eq!(made("{topic}/out/{client}/{x"), "a/b/out/c_{topic}_/{x");
    }
}
