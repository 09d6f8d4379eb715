//! Findings about a version that its author should know about, although it deploys.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A finding from deploying a version that its author should know about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Note {
    /// A stable code: `random_at_import`.
    pub code: String,
    /// What it means and what to do.
    pub message: String,
}

/// Places that a message names, and characters of each: a template says them, in which the function's code ran.
const PLACES_MAX: usize = 3;
const PLACE_CHARS: usize = 200;

/// The random bytes that an import drew, as reported by the template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Drawn {
    /// How many.
    bytes: u64,
    /// How many of them are in buffers that each instance refills.
    #[serde(default)]
    renewed: u64,
    /// Lines of code that drew the first of them.
    #[serde(default)]
    places: Vec<String>,
}

impl Drawn {
    /// What the author should know of it.
    pub fn note(&self) -> Option<Note> {
        if self.bytes == 0 {
            return None;
        }
        let places: Vec<String> = self
            .places
            .iter()
            .take(PLACES_MAX)
            .map(|place| {
                place
                    .chars()
                    .filter(|c| !c.is_control())
                    .take(PLACE_CHARS)
                    .collect()
            })
            .collect();
        let mut message = format!("The import drew {} random bytes", self.bytes);
        if !places.is_empty() {
            message = format!("{message} ({})", places.join(", "));
        }
        message.push_str(
            ". Values derived from them, such as ids, keys or tokens, are the same in every instance: create them in \
             the handler, or in a function passed to register_after_restore.",
        );
        if self.renewed > 0 {
            message = format!(
                "{message} Buffers that still hold {} of the bytes are refilled in each instance.",
                self.renewed
            );
        }
        Some(Note {
            code: "random_at_import".into(),
            message,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_bytes_places_and_the_remedy() {
        let report = r#"{"bytes":24,"renewed":16,"places":["main.js:3","a\nb.js:4","c","d"]}"#;
        let drawn: Drawn = serde_json::from_str(report).unwrap();
        let note = drawn.note().unwrap();
        assert_eq!(note.code, "random_at_import");
        assert!(
            note.message
                .starts_with("The import drew 24 random bytes (main.js:3, ab.js:4, c). ")
        );
        assert!(note.message.contains("register_after_restore"));
        assert!(note.message.contains("hold 16 of the bytes"));
        assert_eq!(Drawn::default().note(), None);
    }
}
