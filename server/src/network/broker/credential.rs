//! A secret in a header.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use zeroize::Zeroizing;

use crate::model::{BoundHost, SecretBinding};
use crate::secrets::Secrets;

/// What stands for the secret in a format.
const PLACE: &str = "{}";

/// How a secret is put into requests to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Credential {
    secret: String,
    header: HeaderName,
    form: Form,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// With [`PLACE`] for the secret.
    Format(String),
    /// Basic authentication of this user.
    Basic(String),
}

/// A secret could not be put into a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotPut {
    #[error("there is no secret \"{0}\"")]
    Missing(String),
    #[error("the value of the secret \"{0}\" cannot stand in a header")]
    Value(String),
}

impl Credential {
    /// What a binding says; none if it is not brokered.
    pub(super) fn of(binding: &SecretBinding) -> Option<(BoundHost, Self)> {
        let (host, header) = binding.brokered()?;
        let form = match binding {
            SecretBinding::Header { format, .. } => Form::Format(format.clone()),
            SecretBinding::Basic { basic, .. } => Form::Basic(basic.clone()),
            SecretBinding::Env { .. } => return None,
        };
        let credential = Self {
            secret: binding.secret().to_owned(),
            // A name that is none was refused when the binding was made.
            header: HeaderName::from_bytes(header.as_bytes()).unwrap_or(AUTHORIZATION),
            form,
        };
        Some((host.clone(), credential))
    }

    /// Puts the secret as it is now into a request, in place of all that the function sent under that name.
    pub(super) fn put(&self, headers: &mut HeaderMap, secrets: &Secrets) -> Result<(), NotPut> {
        let value = secrets.value(&self.secret);
        let value = value.ok_or_else(|| NotPut::Missing(self.secret.clone()))?;
        let header = self.header(&value);
        let header = header.ok_or_else(|| NotPut::Value(self.secret.clone()))?;
        headers.insert(self.header.clone(), header);
        secrets.note_use(&self.secret);
        Ok(())
    }

    fn header(&self, value: &str) -> Option<HeaderValue> {
        let text = Zeroizing::new(match &self.form {
            Form::Format(format) => format.replacen(PLACE, value, 1),
            Form::Basic(user) => {
                let both = Zeroizing::new(format!("{user}:{value}"));
                format!("Basic {}", STANDARD.encode(both.as_bytes()))
            }
        });
        let mut header = HeaderValue::from_str(&text).ok()?;
        // What prints headers leaves it out.
        header.set_sensitive(true);
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn credential(binding: &str) -> Credential {
        let binding: SecretBinding = serde_json::from_str(binding).unwrap();
        Credential::of(&binding).unwrap().1
    }

    #[test]
    fn the_secret_stands_where_the_format_says() {
        let header = |binding: &str, value: &str| {
            let header = credential(binding).header(value)?;
            assert!(header.is_sensitive() && !format!("{header:?}").contains(value));
            Some(header.to_str().unwrap().to_owned())
        };
        let bearer =
            r#"{"secret":"s","host":"a.example","header":"Authorization","format":"Bearer {}"}"#;
        assert_eq!(header(bearer, "k{}y").as_deref(), Some("Bearer k{}y"));
        assert_eq!(header(bearer, "two\r\nlines"), None);
        let basic = r#"{"secret":"s","host":"a.example","basic":"Aladdin"}"#;
        assert_eq!(
            header(basic, "open sesame").as_deref(),
            Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        );
        let env = serde_json::from_str(r#"{"secret":"s","env":"S"}"#).unwrap();
        assert!(Credential::of(&env).is_none());
    }

    proptest! {
        /// Whatever value a binding takes makes a header of one line, and no other does.
        #[test]
        fn what_a_binding_takes_can_be_sent(value in ".{0,40}") {
            for text in [
                r#"{"secret":"s","host":"a.example","header":"X-Key","format":"key={}"}"#,
                r#"{"secret":"s","host":"a.example","basic":"user"}"#,
            ] {
                let binding: SecretBinding = serde_json::from_str(text).unwrap();
                let header = credential(text).header(&value);
                if binding.takes(&value) {
                    let header = header.expect("a header");
                    prop_assert!(header.to_str().is_ok());
                    prop_assert!(!header.as_bytes().contains(&b'\n'));
                }
            }
        }
    }
}
