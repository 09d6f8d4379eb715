//! Reads the fields of a user, field by field.

use serde_json::Value;

use crate::accounts::rules;
use crate::http::spec::{Fields, Input, invalid};
use crate::model::{InvalidField, Role, UserPatch};

const ROLE_RULE: &str = "must be \"viewer\", \"operator\" or \"admin\"";
const DISABLED_RULE: &str = "must be true or false";
const PASSWORD_RULE: &str = "must be a string of 12 to 128 characters";

/// A user to make, checked.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::http) struct NewUser {
    /// The name.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The typed password; `None` has one made.
    pub password: Option<String>,
}

/// Reads the fields of a new user.
///
/// # Errors
/// The first field that breaks its rule. A password is never repeated.
pub(in crate::http) fn parse_new(fields: &Fields) -> Result<NewUser, InvalidField> {
    known(fields, &["name", "role", "password"])?;
    let missing = |field, rule: &str| invalid(field, &Value::Null, format!("is required; {rule}"));
    let name = fields
        .get("name")
        .ok_or_else(|| missing("name", rules::NAME_RULE))?;
    let good_name = name
        .string()
        .filter(|name| rules::is_name(name))
        .ok_or_else(|| name.invalid("name", rules::NAME_RULE))?;
    let role = role(fields)?.ok_or_else(|| missing("role", ROLE_RULE))?;
    Ok(NewUser {
        name: good_name.to_owned(),
        role,
        password: password(fields, good_name)?,
    })
}

/// Reads the changes to the user `name`; the password is still as it was typed.
pub(super) fn parse_patch(fields: &Fields, name: &str) -> Result<UserPatch, InvalidField> {
    if let Some(input) = fields.get("name") {
        return Err(input.invalid("name", "cannot be changed; create another user instead"));
    }
    known(fields, &["role", "disabled", "password"])?;
    let disabled = fields
        .get("disabled")
        .map(|input| match input {
            Input::Json(Value::Bool(disabled)) => Ok(*disabled),
            other => Err(other.invalid("disabled", DISABLED_RULE)),
        })
        .transpose()?;
    let patch = UserPatch {
        role: role(fields)?,
        disabled,
        password: password(fields, name)?,
    };
    if patch == UserPatch::default() {
        let rule = "must set at least one of role, disabled, password";
        return Err(invalid("body", &serde_json::json!({}), rule));
    }
    Ok(patch)
}

/// Refuses unknown fields, without repeating what may be a misspelt password.
fn known(fields: &Fields, names: &[&str]) -> Result<(), InvalidField> {
    fields
        .only(names)
        .map_err(|error| rules::refused(&error.field, &error.rule))
}

/// A typed role.
pub(in crate::http) fn role(fields: &Fields) -> Result<Option<Role>, InvalidField> {
    fields
        .get("role")
        .map(|input| {
            let role = input.string().and_then(Role::by_name);
            role.ok_or_else(|| input.invalid("role", ROLE_RULE))
        })
        .transpose()
}

fn password(fields: &Fields, name: &str) -> Result<Option<String>, InvalidField> {
    let Some(input) = fields.get("password") else {
        return Ok(None);
    };
    let password = input
        .string()
        .ok_or_else(|| rules::refused("password", PASSWORD_RULE))?;
    rules::check_password("password", name, password)?;
    Ok(Some(password.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(body: Value) -> Fields {
        let Value::Object(object) = body else {
            unreachable!("the tests pass objects")
        };
        Fields::from_json(object)
    }

    #[test]
    fn users_are_parsed_field_by_field() {
        for (body, wrong) in [
            (json!({"name": "ada", "role": "admin"}), None),
            (
                json!({"name": "ada", "role": "viewer", "password": "a long password"}),
                None,
            ),
            (json!({"role": "admin"}), Some("name")),
            (json!({"name": "Ada", "role": "admin"}), Some("name")),
            (json!({"name": 1, "role": "admin"}), Some("name")),
            (json!({"name": "ada"}), Some("role")),
            (json!({"name": "ada", "role": "root"}), Some("role")),
            (json!({"name": "ada", "role": ["admin"]}), Some("role")),
            (
                json!({"name": "ada", "role": "admin", "password": "short"}),
                Some("password"),
            ),
            (
                json!({"name": "ada", "role": "admin", "password": null}),
                Some("password"),
            ),
            (
                json!({"name": "ada", "role": "admin", "pasword": "hunter2hunter2"}),
                Some("pasword"),
            ),
        ] {
            let shown = body.to_string();
            match (parse_new(&fields(body)), wrong) {
                (Ok(_), None) => {}
                (Err(error), Some(field)) => {
                    assert_eq!(error.field, field, "{shown}");
                    let text = error.to_string();
                    assert!(
                        !text.contains("hunter2") && !text.contains("short\""),
                        "{text}"
                    );
                }
                (outcome, _) => panic!("{shown}: {outcome:?}"),
            }
        }
    }

    #[test]
    fn changes_are_parsed_field_by_field() {
        let patch = parse_patch(&fields(json!({"disabled": true, "role": "viewer"})), "ada");
        let patch = patch.expect("valid");
        assert_eq!(
            (patch.disabled, patch.role),
            (Some(true), Some(Role::Viewer))
        );
        for (body, field) in [
            (json!({}), "body"),
            (json!({"name": "bob"}), "name"),
            (json!({"disabled": "yes"}), "disabled"),
            (json!({"role": 1}), "role"),
            (json!({"password": "ada"}), "password"),
            (json!({"colour": 1}), "colour"),
        ] {
            assert_eq!(parse_patch(&fields(body), "ada").unwrap_err().field, field);
        }
    }
}
