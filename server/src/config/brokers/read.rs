//! Reads the file of the brokers, and the files that it names.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Map, Value};

use super::{Broker, Brokers};
use crate::model::normal_host_name;

/// Most brokers: each has connections of its own.
const BROKERS_MAX: usize = 64;
/// Longest name of one.
const NAME_MAX: usize = 63;
/// Longest user name, password and client identifier: MQTT has 16 bits for a length.
const TEXT_MAX: usize = 1 << 10;
/// Longest client identifier of the file: the owner's name comes after it.
const CLIENT_MAX: usize = 128;
/// Seconds between signs of life, if the file says nothing.
const KEEP_ALIVE_S: u16 = 60;
/// Ports of MQTT (IANA).
const PLAIN: u16 = 1883;
const SECURE: u16 = 8883;
const FIELDS: [&str; 6] = [
    "url",
    "ca_file",
    "username",
    "password_file",
    "client_id",
    "keep_alive_s",
];

/// What the file says, or what is wrong with it. Files that it names are relative to `files`.
pub(super) fn read(text: &str, files: &Path, node: &str) -> Result<Brokers, String> {
    let shape = "must be a JSON object of brokers such as {\"plant\": {\"url\": \"mqtt://192.0.2.7:1883\"}}";
    let all: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| format!("{shape}: {error}"))?;
    if all.len() > BROKERS_MAX {
        return Err(format!(
            "must have at most {BROKERS_MAX} brokers; these are {}",
            all.len()
        ));
    }
    let mut brokers = BTreeMap::new();
    for (name, value) in all {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        if !(1..=NAME_MAX).contains(&name.len()) || !name.bytes().all(is_plain) {
            return Err(format!(
                "broker {name:?}: its name must be 1 to {NAME_MAX} characters of a-z, 0-9, - and _"
            ));
        }
        let Value::Object(object) = value else {
            return Err(format!(
                "broker {name:?}: must be an object with {}",
                FIELDS.join(", ")
            ));
        };
        let entry = Entry {
            object: &object,
            files,
        };
        let broker = entry.broker(&name, node);
        let broker = broker.map_err(|(field, rule)| format!("broker {name:?}: {field} {rule}"))?;
        brokers.insert(name, broker);
    }
    Ok(Brokers(brokers))
}

/// A field and its rule.
type Wrong = (String, String);

fn wrong<T>(field: &str, rule: impl Into<String>) -> Result<T, Wrong> {
    Err((field.to_owned(), rule.into()))
}

/// A broker of the file.
struct Entry<'a> {
    object: &'a Map<String, Value>,
    files: &'a Path,
}

impl Entry<'_> {
    fn broker(&self, name: &str, node: &str) -> Result<Broker, Wrong> {
        if let Some(unknown) = self
            .object
            .keys()
            .find(|key| !FIELDS.contains(&key.as_str()))
        {
            return wrong(
                unknown,
                format!("is unknown; expected one of {}", FIELDS.join(", ")),
            );
        }
        let url = self.text("url", TEXT_MAX)?.unwrap_or_default();
        let Some((tls, host, port)) = place(&url) else {
            return wrong(
                "url",
                "must be mqtt://host:port or mqtts://host:port, without user, path or query",
            );
        };
        let ca = self.file("ca_file")?;
        if ca.is_some() && !tls {
            return wrong("ca_file", "is for mqtts:// only");
        }
        if ca.as_deref().is_some_and(|ca| !has_certificates(ca)) {
            return wrong("ca_file", "must be a file with certificates in PEM");
        }
        let username = self.text("username", TEXT_MAX)?;
        let password = self.file("password_file")?;
        let password = password.map(|text| text.trim_end_matches(['\r', '\n']).to_owned());
        if let Some(password) = &password {
            if password.is_empty() || password.len() > TEXT_MAX {
                return wrong(
                    "password_file",
                    format!("must be a file with 1 to {TEXT_MAX} bytes"),
                );
            }
            if username.is_none() {
                return wrong("username", "must be given with password_file");
            }
        }
        let client_id = match self.text("client_id", CLIENT_MAX)? {
            Some(client_id) => client_id,
            None => format!("hearth-{node}-{name}")
                .chars()
                .take(CLIENT_MAX)
                .collect(),
        };
        let keep_alive_s = match self.object.get("keep_alive_s") {
            None => KEEP_ALIVE_S,
            Some(value) => {
                let seconds = value
                    .as_u64()
                    .and_then(|seconds| u16::try_from(seconds).ok());
                match seconds.filter(|seconds| (5..=1200).contains(seconds)) {
                    Some(seconds) => seconds,
                    None => return wrong("keep_alive_s", "must be a whole number from 5 to 1200"),
                }
            }
        };
        Ok(Broker {
            host,
            port,
            tls,
            ca,
            username,
            password,
            client_id,
            keep_alive_s,
        })
    }

    fn text(&self, field: &str, most: usize) -> Result<Option<String>, Wrong> {
        match self.object.get(field) {
            None => Ok(None),
            Some(Value::String(text))
                if (1..=most).contains(&text.len()) && !text.contains(char::is_control) =>
            {
                Ok(Some(text.clone()))
            }
            Some(_) => wrong(
                field,
                format!("must be text of 1 to {most} bytes without control characters"),
            ),
        }
    }

    /// What a file says.
    fn file(&self, field: &str) -> Result<Option<String>, Wrong> {
        let Some(path) = self.text(field, 4096)? else {
            return Ok(None);
        };
        let path = self.files.join(path);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) => wrong(
                field,
                format!(
                    "must be a file that can be read, {}: {error}",
                    path.display()
                ),
            ),
        }
    }
}

/// Whether a text has certificates, all of them readable.
fn has_certificates(pem: &str) -> bool {
    let all = CertificateDer::pem_slice_iter(pem.as_bytes());
    let mut roots = RootCertStore::empty();
    let mut taken = all.map(|one| one.is_ok_and(|one| roots.add(one).is_ok()));
    taken.all(|is_taken| is_taken) && !roots.is_empty()
}

/// Whether a URL asks for TLS, its host and its port.
fn place(url: &str) -> Option<(bool, String, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let (tls, usual) = match scheme {
        "mqtt" => (false, PLAIN),
        "mqtts" => (true, SECURE),
        _ => return None,
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            let host = host.parse::<IpAddr>().ok()?.to_string();
            (
                host,
                port.strip_prefix(':').or(port.is_empty().then_some("")),
            )
        }
        None => {
            let (host, port) = rest.split_once(':').map_or((rest, ""), |both| both);
            (normal_host_name(host)?, Some(port))
        }
    };
    let port = match port? {
        "" => usual,
        number => number.parse().ok().filter(|number| *number > 0)?,
    };
    Some((tls, host, port))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as BASE64;
    use serde_json::json;

    use super::*;

    fn certificate() -> String {
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(vec!["h".to_owned()]).expect("a name");
        let made = params.self_signed(&key).expect("a certificate");
        let text = BASE64.encode(made.der());
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    }

    fn of(value: Value) -> Result<Brokers, String> {
        let dir = tempfile::tempdir().expect("a directory");
        let write =
            |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("written");
        write("password", "of plant\n");
        write("empty", "");
        write("ca.pem", &certificate());
        write(
            "bad.pem",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        );
        read(&value.to_string(), dir.path(), "node")
    }

    #[test]
    fn brokers_have_defaults_and_secrets() {
        let all = of(json!({
            "plant": {"url": "mqtt://Broker.Example.com", "username": "me", "password_file": "password"},
            "far": {"url": "mqtts://[2001:db8::1]:8884/", "ca_file": "ca.pem", "client_id": "mine", "keep_alive_s": 5},
        }))
        .expect("brokers");
        let plant = all.get("plant").expect("one");
        assert_eq!(
            (plant.host.as_str(), plant.port, plant.tls),
            ("broker.example.com", 1883, false)
        );
        assert_eq!(plant.password.as_deref(), Some("of plant"));
        assert_eq!(
            (plant.client_id.as_str(), plant.keep_alive_s),
            ("hearth-node-plant", 60)
        );
        let far = all.get("far").expect("another");
        assert_eq!(
            (far.host.as_str(), far.port, far.tls),
            ("2001:db8::1", 8884, true)
        );
        assert_eq!((far.client_id.as_str(), far.keep_alive_s), ("mine", 5));
        assert_eq!(all.names().collect::<Vec<_>>(), ["far", "plant"]);
        let passed = Brokers::received(all.sealed().ok()).expect("the same");
        assert!(passed == all);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let with = |field: &str, value: Value| {
            let mut broker = json!({"url": "mqtts://h"});
            broker[field] = value;
            json!({"plant": broker})
        };
        for (value, words) in [
            (json!([]), "must be a JSON object of brokers"),
            (json!({"a b": {}}), "broker \"a b\": its name"),
            (json!({"plant": 3}), "broker \"plant\": must be an object"),
            (json!({"plant": {}}), "broker \"plant\": url must be"),
            (
                with("url", json!("http://h")),
                "broker \"plant\": url must be",
            ),
            (with("url", json!("mqtt://u@h")), "url must be"),
            (with("url", json!("mqtt://h:0")), "url must be"),
            (with("url", json!("mqtt://h/path")), "url must be"),
            (with("url", json!("mqtt://[::1]1")), "url must be"),
            (with("url", json!("mqtt://")), "url must be"),
            (with("user", json!("me")), "user is unknown"),
            (with("username", json!(3)), "username must be text"),
            (
                with("password_file", json!("password")),
                "username must be given",
            ),
            (
                with("password_file", json!("nothing")),
                "password_file must be a file that can be read",
            ),
            (
                with("password_file", json!("empty")),
                "password_file must be a file with 1",
            ),
            (
                with("ca_file", json!("bad.pem")),
                "ca_file must be a file with certificates",
            ),
            (
                with("ca_file", json!("password")),
                "ca_file must be a file with certificates",
            ),
            (with("keep_alive_s", json!(4)), "keep_alive_s must be"),
            (with("client_id", json!("")), "client_id must be"),
            (
                json!({"plant": {"url": "mqtt://h", "ca_file": "ca.pem"}}),
                "ca_file is for mqtts",
            ),
        ] {
            let error = of(value.clone()).err().unwrap_or_default();
            assert!(error.contains(words), "{value}: {error}");
        }
    }
}
