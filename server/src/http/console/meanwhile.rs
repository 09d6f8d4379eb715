//! Detects changes made to a function since a form was rendered. Forms carry the revision they were rendered from, so
//! that nobody overwrites a change they did not see.

use crate::http::App;
use crate::http::problem::Problem;
use crate::model::{FunctionView, Meant, Revision};

use super::form::Form;

/// The hidden field.
const REVISION: &str = "revision";

/// What a form was drawn from; nothing where it does not say.
pub fn drawn_from(form: &Form) -> Option<Revision> {
    Some(form.trimmed(REVISION))
        .filter(|revision| !revision.is_empty())
        .map(|revision| Revision::named(&revision))
}

/// What a form's change is meant for. A form that does not say means whatever there is.
pub fn meant(form: &Form) -> Meant {
    drawn_from(form).map_or(Meant::Any, Meant::only)
}

/// What has happened.
pub struct Meanwhile {
    /// The sentence that says it.
    pub title: String,
    /// What it comes to.
    pub changes: String,
}

impl Meanwhile {
    /// What has made `now` of the function that was shown.
    pub async fn since(app: &App, shown: &Revision, now: &FunctionView) -> Result<Self, Problem> {
        let active = now.active_version;
        let Some(known) = shown.version_of(now.id) else {
            return Ok(Self {
                title: "The function was deleted and created again in the meantime.".to_owned(),
                changes: format!("Its active version is {active}."),
            });
        };
        let changes = app.engine.setting_changes(&now.name, known, active).await?;
        let described: Vec<String> = changes
            .iter()
            .map(|change| format!("{} from {} to {}", change.name, change.before, change.after))
            .collect();
        Ok(Self {
            title: format!("Version {active} became active in the meantime."),
            changes: match described.is_empty() {
                true => "Its settings are the same.".to_owned(),
                false => format!("It changed {}.", described.join(", ")),
            },
        })
    }
}
