//! A server that speaks TLS, with a certificate that it has made itself.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Answers each request with the same body.
pub struct TlsPeer {
    address: SocketAddr,
    /// Its certificate, for `localhost`, as PEM.
    pub authority: String,
    handshakes: Arc<AtomicUsize>,
}

impl TlsPeer {
    /// Its threads end with their connections.
    pub fn start(body: &'static [u8]) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let rcgen::CertifiedKey { cert, signing_key } = made.expect("a certificate");
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a certificate and its key");
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let handshakes = Arc::new(AtomicUsize::new(0));
        let counter = handshakes.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, counter) = (config.clone(), counter.clone());
                thread::spawn(move || serve(stream, config, &counter, body));
            }
        });
        Self {
            address,
            authority: pem(cert.der()),
            handshakes,
        }
    }

    /// By this name.
    pub fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/", self.address.port())
    }

    /// Complete ones.
    pub fn handshakes(&self) -> usize {
        self.handshakes.load(Ordering::Relaxed)
    }
}

fn pem(der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>, counter: &AtomicUsize, body: &[u8]) {
    stream.set_nodelay(true).expect("no delay");
    let session = ServerConnection::new(config).expect("a session");
    let mut stream = StreamOwned::new(session, stream);
    let mut is_counted = false;
    let mut text: Vec<u8> = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(read) => text.extend_from_slice(&buffer[..read]),
        }
        if !is_counted {
            counter.fetch_add(1, Ordering::Relaxed);
            is_counted = true;
        }
        let Some(head) = text.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            continue;
        };
        let fields = String::from_utf8_lossy(&text[..head]).into_owned();
        let length = fields
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .and_then(|length| length.parse::<usize>().ok())
            .unwrap_or(0);
        if text.len() < head + 4 + length {
            continue;
        }
        text.clear();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        if stream.write_all(answer.as_bytes()).is_err() || stream.write_all(body).is_err() {
            return;
        }
    }
}
