//! Hosts by HTTPS, one that wants a secret and one that wants none.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The host that secrets are bound to, and the other one.
pub const BOUND: &str = "api.example.com";
pub const DIRECT: &str = "direct.example.com";
/// Where they listen.
pub const HTTPS: u16 = 8443;
/// What the bound one wants.
pub const SECRET: &str = "sk_test_Wz5uQx8oRk2t";

/// Answers at every address of the calling thread's network namespace, on threads that end with this process. Returns the
/// authority that the hosts' certificate is by, PEM.
pub fn serve() -> io::Result<String> {
    let (config, authority) = certified().map_err(io::Error::other)?;
    let listener = TcpListener::bind(("0.0.0.0", HTTPS))?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = config.clone();
            // The other side has gone.
            std::thread::spawn(move || drop(answer(stream, config)));
        }
    });
    Ok(authority)
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

fn certified() -> Result<(Arc<ServerConfig>, String), Failed> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new([BOUND, DIRECT].map(str::to_owned))?;
    // With the authority's name OpenSSL would take it for self-signed.
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, BOUND);
    let leaf = params.signed_by(&key, &authority)?;
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)?;
    Ok((Arc::new(config), pem(authority.der())))
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    // Only ASCII.
    let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy);
    let lines = lines.collect::<Vec<_>>().join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")
}

/// Answers one request after the other, none of which has a body.
fn answer(stream: TcpStream, config: Arc<ServerConfig>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    let (mut head, mut bytes) = (Vec::new(), [0; 4096]);
    loop {
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut bytes)? {
                0 => return Ok(()),
                length => head.extend_from_slice(&bytes[..length]),
            }
        }
        let has_secret = String::from_utf8_lossy(&head).contains(SECRET);
        let wants_it = stream.conn.server_name() == Some(BOUND);
        let status = match has_secret == wants_it {
            true => "200 OK",
            false => "401 Unauthorized",
        };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
        stream.write_all(answer.as_bytes())?;
        head.clear();
    }
}
