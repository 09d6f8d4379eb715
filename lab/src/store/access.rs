//! What functions need to use a store: its address, and its token or, for S3, URLs that the lab has signed for them.

use std::time::Duration;

use hyper::Uri;
use hyper::http::uri::Authority;
use rusty_s3::{Bucket, Credentials, S3Action as _, UrlStyle};
use serde_json::{Map, Value, json};

use super::BUCKET;

/// How long signed URLs are good: for a sub-experiment, which takes a day at most, and what is before and after it.
const SIGNED_FOR: Duration = Duration::from_hours(48);

/// What is wrong with an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is not one of a store.
    #[error("{0:?} is not an address of a store, such as http://192.0.2.7:9000")]
    Store(String),
    /// It is not one of a bucket.
    #[error("{0:?} is not an address of a bucket, such as http://192.0.2.7:9000/bucket")]
    Bucket(String),
}

/// What functions need to use a store.
#[derive(Clone, PartialEq, Eq)]
pub struct Access {
    /// Host and port.
    pub authority: String,
    /// What the administrator opens to functions, as `HEARTH_NETWORK_ALLOW_PRIVATE` takes it.
    pub network: String,
    /// The bucket's name.
    pub bucket: String,
    right: Right,
}

#[derive(Clone, PartialEq, Eq)]
enum Right {
    /// For a store of the lab's.
    Token(String),
    /// For S3.
    Signed(Box<(Bucket, Credentials)>),
}

/// What S3 knows somebody by.
#[derive(Debug)]
pub struct Keys {
    /// Access key.
    pub id: String,
    /// Its secret.
    pub secret: String,
    /// Of temporary ones.
    pub session_token: Option<String>,
    /// The bucket's region.
    pub region: String,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without what opens it.
        f.debug_struct("Access")
            .field("authority", &self.authority)
            .field("bucket", &self.bucket)
            .finish_non_exhaustive()
    }
}

impl Access {
    /// To the run's own store.
    pub(super) fn own(authority: String, token: String, network: &str) -> Self {
        Self {
            authority,
            network: network.to_owned(),
            bucket: BUCKET.to_owned(),
            right: Right::Token(token),
        }
    }

    /// To a store of `hearth lab store` at an address such as `http://192.0.2.7:9000`.
    ///
    /// # Errors
    /// An address that is none, or has another path than the bucket's.
    pub fn with_token(url: &str, token: &str) -> Result<Self, AddressError> {
        let bad = || AddressError::Store(url.to_owned());
        let (authority, path) = parts(url).ok_or_else(bad)?;
        if !path.is_empty() && path != BUCKET {
            return Err(bad());
        }
        let right = Right::Token(token.to_owned());
        Ok(Self::new(&authority, BUCKET, right))
    }

    /// To a bucket of S3's, or of what speaks it, at an address such as `http://192.0.2.7:9000/bucket`.
    ///
    /// # Errors
    /// An address that is none of a bucket.
    pub fn with_keys(url: &str, keys: Keys) -> Result<Self, AddressError> {
        let bad = || AddressError::Bucket(url.to_owned());
        let (authority, bucket) = parts(url).ok_or_else(bad)?;
        if bucket.is_empty() || bucket.contains('/') {
            return Err(bad());
        }
        let endpoint = format!("http://{authority}/").parse().map_err(|_| bad())?;
        let made = Bucket::new(endpoint, UrlStyle::Path, bucket.clone(), keys.region);
        let made = made.map_err(|_| bad())?;
        let credentials = match keys.session_token {
            Some(token) => Credentials::new_with_token(keys.id, keys.secret, token),
            None => Credentials::new(keys.id, keys.secret),
        };
        let right = Right::Signed(Box::new((made, credentials)));
        Ok(Self::new(&authority, &bucket, right))
    }

    fn new(authority: &Authority, bucket: &str, right: Right) -> Self {
        let port = authority.port_u16().unwrap_or(80);
        Self {
            authority: format!("{}:{port}", authority.host()),
            network: authority.host().trim_matches(['[', ']']).to_owned(),
            bucket: bucket.to_owned(),
            right,
        }
    }

    /// The policy of a function that reaches the store and nothing else.
    pub fn policy(&self) -> Value {
        json!({ "allow": [format!("{}/tcp", self.authority)] })
    }

    /// The environment of a function of this name, which is alone or all members of a chain of so many. With S3 each of those has
    /// one object, because a URL is signed for one.
    pub fn environment(&self, name: &str, functions: usize) -> Value {
        match &self.right {
            Right::Token(token) => json!({"STORE": self.authority, "STORE_TOKEN": token}),
            Right::Signed(signer) => {
                let (bucket, credentials) = &**signer;
                let credentials = Some(credentials);
                let signed = |number: usize| {
                    let object = object(name, number);
                    let put = bucket.put_object(credentials, &object).sign(SIGNED_FOR);
                    let get = bucket.get_object(credentials, &object).sign(SIGNED_FOR);
                    json!({"PUT": target(put.as_str()), "GET": target(get.as_str())})
                };
                let all: Map<String, Value> = (1..=functions)
                    .map(|number| (number.to_string(), signed(number)))
                    .collect();
                json!({"STORE": self.authority, "STORE_SIGNED": Value::Object(all).to_string()})
            }
        }
    }

    /// Paths by which the objects of such functions can be removed. None for a store of the lab's, where the oldest go by themselves.
    pub(super) fn removals(&self, name: &str, functions: usize) -> Vec<String> {
        let Right::Signed(signer) = &self.right else {
            return Vec::new();
        };
        let (bucket, credentials) = &**signer;
        let removal = |number: usize| {
            let object = object(name, number);
            let action = bucket.delete_object(Some(credentials), &object);
            target(action.sign(SIGNED_FOR).as_str())
        };
        (1..=functions).map(removal).collect()
    }
}

/// Authority and path, without slashes around, of an address that begins with `http://`.
fn parts(url: &str) -> Option<(Authority, String)> {
    let uri: Uri = url.parse().ok()?;
    let authority = uri.authority()?;
    let is_plain = uri.scheme_str() == Some("http")
        && uri.query().is_none()
        && !authority.as_str().contains('@');
    is_plain.then(|| (authority.clone(), uri.path().trim_matches('/').to_owned()))
}

/// The object of a chain's function of this number, counted from 1.
fn object(name: &str, number: usize) -> String {
    format!("transfer-payload-{name}-{number}")
}

/// Path and query of an address.
fn target(url: &str) -> String {
    let uri = url.parse::<Uri>().ok();
    let target = uri.as_ref().and_then(Uri::path_and_query);
    target.map_or_else(String::new, ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys {
            id: "AKIDEXAMPLE".to_owned(),
            secret: "very-secret".to_owned(),
            session_token: None,
            region: "us-east-1".to_owned(),
        }
    }

    #[test]
    fn a_function_reaches_the_store_and_nothing_else() {
        let access = Access::with_token("http://192.0.2.7:9000/", "secret").expect("a store");
        assert_eq!(
            access.policy().to_string(),
            r#"{"allow":["192.0.2.7:9000/tcp"]}"#
        );
        assert_eq!(access.network, "192.0.2.7");
        assert_eq!(
            access.environment("x", 2),
            json!({"STORE": "192.0.2.7:9000", "STORE_TOKEN": "secret"})
        );
        assert!(access.removals("x", 2).is_empty());
        assert!(!format!("{access:?}").contains("secret"));
        let access = Access::with_token("http://[2001:db8::7]/stellar", "").expect("a store");
        assert_eq!(
            (access.authority.as_str(), access.network.as_str()),
            ("[2001:db8::7]:80", "2001:db8::7")
        );
        for bad in [
            "",
            "a:9000",
            "https://a/",
            "http://a/b",
            "http://u@a",
            "http://a?b",
        ] {
            assert!(Access::with_token(bad, "").is_err(), "{bad}");
        }
    }

    #[test]
    fn a_function_gets_signed_addresses_and_no_keys() {
        let access = Access::with_keys("http://192.0.2.7:9000/data", keys()).expect("a bucket");
        let environment = access.environment("lab-1", 2);
        let text = environment.to_string();
        assert!(!text.contains("very-secret") && !format!("{access:?}").contains("very-secret"));
        let signed = environment["STORE_SIGNED"].as_str().expect("text");
        let signed: Value = serde_json::from_str(signed).expect("JSON");
        for (number, method) in [("1", "PUT"), ("1", "GET"), ("2", "PUT"), ("2", "GET")] {
            let path = signed[number][method].as_str().expect("a path");
            let begin = format!("/data/transfer-payload-lab-1-{number}?");
            assert!(
                path.starts_with(&begin) && path.contains("X-Amz-Signature="),
                "{path}"
            );
        }
        assert_ne!(signed["1"]["PUT"], signed["1"]["GET"]);
        assert_eq!(access.removals("lab-1", 2).len(), 2);
        for bad in [
            "http://a",
            "http://a/",
            "http://a/b/c",
            "https://a/b",
            "s3://b",
        ] {
            assert!(Access::with_keys(bad, keys()).is_err(), "{bad}");
        }
    }
}
