//! Values of a page that change while it is open.
//!
//! The page is rendered with them and the stream sends them again when they change, under the same keys: an element names
//! its key in `data-live` (text, perhaps with a tooltip), `data-count` (a number that only grows), `data-bar` (a share) or `data-html` (a
//! fragment).

use std::collections::BTreeMap;

use serde::Serialize;

/// Values by key.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Values {
    /// What an element says.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub text: BTreeMap<String, String>,
    /// What an element's tooltip says: the key of its text. Empty for none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub title: BTreeMap<String, String>,
    /// Counters: the page shows the largest value received.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub count: BTreeMap<String, u64>,
    /// Shares from 0 to 1 in thousandths, as the width of a bar.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bar: BTreeMap<String, u32>,
    /// Rendered fragments.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub html: BTreeMap<String, String>,
}

/// Length of a full bar.
pub const BAR: u32 = 1000;

impl Values {
    /// Sets a text.
    pub fn set(&mut self, key: impl Into<String>, text: impl Into<String>) {
        self.text.insert(key.into(), text.into());
    }

    /// Sets a text and what its tooltip says, or nothing.
    pub fn set_titled(&mut self, key: String, text: String, title: String) {
        self.text.insert(key.clone(), text);
        self.title.insert(key, title);
    }

    /// Sets a counter.
    pub fn set_count(&mut self, key: &str, count: u64) {
        self.count.insert(key.into(), count);
    }

    /// Sets a bar to `part` of `whole`, with nothing of nothing as empty.
    pub fn set_bar(&mut self, key: &str, part: f64, whole: f64) {
        let share = if whole > 0.0 {
            (part / whole).clamp(0.0, 1.0)
        } else {
            0.0
        };
        self.bar
            .insert(key.into(), (share * f64::from(BAR)).round() as u32);
    }

    /// Sets a fragment.
    pub fn set_html(&mut self, key: impl Into<String>, html: String) {
        self.html.insert(key.into(), html);
    }

    /// A text, or nothing.
    pub fn text(&self, key: &str) -> &str {
        self.text.get(key).map_or("", String::as_str)
    }

    /// A text under `NAME/key`, or nothing.
    pub fn cell(&self, name: &str, key: &str) -> &str {
        self.text(&format!("{name}/{key}"))
    }

    /// What a text's tooltip says, or nothing.
    pub fn title(&self, key: &str) -> &str {
        self.title.get(key).map_or("", String::as_str)
    }

    /// What the tooltip of a text under `NAME/key` says, or nothing.
    pub fn cell_title(&self, name: &str, key: &str) -> &str {
        self.title(&format!("{name}/{key}"))
    }

    /// A counter.
    pub fn count(&self, key: &str) -> u64 {
        self.count.get(key).copied().unwrap_or_default()
    }

    /// A counter with its thousands set apart.
    pub fn counted(&self, key: &str) -> String {
        crate::format::count(self.count(key))
    }

    /// Length of a bar in thousandths.
    pub fn bar(&self, key: &str) -> u32 {
        self.bar.get(key).copied().unwrap_or_default()
    }

    /// A fragment, or nothing.
    pub fn html(&self, key: &str) -> &str {
        self.html.get(key).map_or("", String::as_str)
    }

    /// A fragment under `NAME/key`, or nothing.
    pub fn html_cell(&self, name: &str, key: &str) -> &str {
        self.html(&format!("{name}/{key}"))
    }

    /// Values that are new or differ from `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            text: changed(&self.text, &before.text),
            title: changed(&self.title, &before.title),
            count: changed(&self.count, &before.count),
            bar: changed(&self.bar, &before.bar),
            html: changed(&self.html, &before.html),
        }
    }

    /// Adds another's values; where both have one, the other's stays.
    pub fn extend(&mut self, other: Self) {
        self.text.extend(other.text);
        self.title.extend(other.title);
        self.count.extend(other.count);
        self.bar.extend(other.bar);
        self.html.extend(other.html);
    }
}

fn changed<T: Clone + PartialEq>(
    now: &BTreeMap<String, T>,
    before: &BTreeMap<String, T>,
) -> BTreeMap<String, T> {
    now.iter()
        .filter(|(key, value)| before.get(*key) != Some(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_sent() {
        let mut before = Values::default();
        before.set("a", "1");
        before.set("b", "2");
        before.set_bar("c", 1.0, 2.0);
        let mut now = before.clone();
        now.set("b", "3");
        now.set_count("d", 4);
        let sent = serde_json::to_string(&now.since(&before)).expect("JSON");
        assert_eq!(sent, r#"{"text":{"b":"3"},"count":{"d":4}}"#);
        assert_eq!(now.since(&now), Values::default());
    }

    #[test]
    fn bars_stay_within_their_frame() {
        let mut values = Values::default();
        for (part, whole, expected) in [
            (1.0, 4.0, 250),
            (9.0, 4.0, 1000),
            (1.0, 0.0, 0),
            (-1.0, 2.0, 0),
        ] {
            values.set_bar("x", part, whole);
            assert_eq!(values.bar("x"), expected);
        }
    }
}
