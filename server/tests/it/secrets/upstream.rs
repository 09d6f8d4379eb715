//! Hosts by HTTPS: with certificates of an authority that the server is told to trust, and a record of what they were sent.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use sha2::{Digest as _, Sha256};

use crate::network::world::World;

/// What the hosts were sent: heads of requests, with the name that was asked for by TLS in front.
pub type Seen = Arc<Mutex<Vec<String>>>;

/// The hosts.
pub struct Upstream {
    pub seen: Seen,
    /// File with the authority's certificate, PEM.
    pub trust: PathBuf,
    /// Hash of the hosts' certificate, hex.
    pub certificate: String,
}

impl Upstream {
    /// Answers at 443 and 8443 of every address of the world outside, for these names.
    pub fn start(world: &World, names: &[&str], dir: &Path) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).expect("names");
        let leaf = params.signed_by(&key, &authority).expect("a certificate");
        let certificate = hex::encode(Sha256::digest(leaf.der()));
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)
            .expect("a configuration");
        let config = Arc::new(config);
        let seen = Seen::default();
        let trust = dir.join("roots.pem");
        std::fs::write(&trust, pem(authority.der())).expect("written");
        world.outside(|| {
            for port in [443, 8443] {
                let listener = TcpListener::bind(("::", port))?;
                let (config, seen) = (config.clone(), seen.clone());
                std::thread::spawn(move || {
                    for stream in listener.incoming().flatten() {
                        let (config, seen) = (config.clone(), seen.clone());
                        std::thread::spawn(move || drop(serve(stream, config, &seen)));
                    }
                });
            }
            Ok(())
        });
        Self {
            seen,
            trust,
            certificate,
        }
    }

    /// What was sent since the last time.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock())
    }
}

fn pem(der: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<_> = text
        .as_bytes()
        .chunks(64)
        .map(String::from_utf8_lossy)
        .collect();
    format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        lines.join("\n")
    )
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>, seen: &Seen) -> io::Result<()> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    let mut request = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = request.windows(4).position(|end| end == b"\r\n\r\n") {
                break at + 4;
            }
            let mut bytes = [0; 4096];
            match stream.read(&mut bytes)? {
                0 => return Ok(()),
                length => request.extend_from_slice(&bytes[..length]),
            }
        };
        let head = String::from_utf8_lossy(&request[..end]).into_owned();
        let length = header(&head, "content-length").and_then(|length| length.parse().ok());
        let whole = end + length.unwrap_or(0);
        while request.len() < whole {
            let mut bytes = [0; 4096];
            let length = stream.read(&mut bytes)?;
            request.extend_from_slice(&bytes[..length]);
        }
        let body = String::from_utf8_lossy(&request[end..whole]).into_owned();
        request.drain(..whole);
        let name = stream.conn.server_name().unwrap_or_default().to_owned();
        seen.lock().push(format!("{name} {head}"));
        let path = head.split(' ').nth(1).unwrap_or_default();
        let answer = match path.strip_prefix("/to/") {
            Some(place) => {
                format!(
                    "HTTP/1.1 302 Found\r\nLocation: https://{place}/landed\r\nContent-Length: 0\r\n\r\n"
                )
            }
            None => {
                let body = format!("{name} {path} {body}");
                let length = body.len();
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
            }
        };
        stream.write_all(answer.as_bytes())?;
    }
}

/// A header of a head.
pub fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (of, value) = line.split_once(':')?;
        of.trim().eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
