//! What siblings share of what was drawn at random before they were forked.

use serde_json::{Value, json};

use super::Template;

/// How many answer.
const SIBLINGS: usize = 8;

/// Boots a template over `files`, of which the handler answers with an object, and forks siblings. What they answer under one
/// name is the same for all where the name starts with `same`, else each one's own. Returns what was reported of draws.
pub fn check_siblings(files: &[(&str, &str)]) -> Value {
    let mut template = Template::start(files, "main.handler");
    let booted = template.message();
    assert_eq!(booted["type"], "booted", "{booted}");
    let answers: Vec<Value> = (0..SIBLINGS)
        .map(|_| template.fork().call(&json!(null)))
        .collect();
    for name in answers[0].as_object().expect("an object").keys() {
        let mut values: Vec<String> = answers.iter().map(|one| one[name].to_string()).collect();
        values.sort();
        values.dedup();
        let expected = if name.starts_with("same") {
            1
        } else {
            SIBLINGS
        };
        assert_eq!(values.len(), expected, "{name}: {values:?}");
    }
    booted["drawn"].clone()
}
