//! TLS on a non-blocking connection, for `https` addresses.
//!
//! Handshakes are part of what a request costs that opens its own connection, so each is whole: sessions are not resumed.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use super::plan::Trust;

/// What connections to one host are made with.
#[derive(Debug, Clone)]
pub(super) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// The settings of all connections.
pub(super) fn config(trust: &Trust) -> io::Result<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let mut config = if trust.insecure {
        let any = Arc::new(Anybody(provider));
        builder
            .dangerous()
            .with_custom_certificate_verifier(any)
            .with_no_client_auth()
    } else {
        builder
            .with_root_certificates(roots(trust)?)
            .with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// The system's certificates, and those that are named beside them.
fn roots(trust: &Trust) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    named(trust, &mut roots).map_err(|error| io::Error::other(format!("--ca: {error}")))?;
    if roots.is_empty() {
        let error = "no certificates on this system: name some with --ca, or use --insecure";
        return Err(io::Error::other(error));
    }
    Ok(roots)
}

fn named(trust: &Trust, roots: &mut RootCertStore) -> Result<(), String> {
    let Some(pem) = &trust.ca_pem else {
        return Ok(());
    };
    let mut found = 0;
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
        found += 1;
    }
    match found {
        0 => Err("no certificate in PEM format".to_owned()),
        _ => Ok(()),
    }
}

impl Trust {
    /// Fails with what is wrong with the certificates that it names.
    pub(crate) fn check(&self) -> Result<(), String> {
        named(self, &mut RootCertStore::empty())
    }
}

impl Tls {
    /// For a host.
    pub(super) fn new(config: Arc<ClientConfig>, host: &str) -> io::Result<Self> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Self { config, name })
    }

    pub(super) fn connect(&self) -> io::Result<Session> {
        let connection = ClientConnection::new(self.config.clone(), self.name.clone());
        let mut connection = connection.map_err(io::Error::other)?;
        // A body of some megabytes is encrypted at once.
        connection.set_buffer_limit(None);
        Ok(Session(Box::new(connection)))
    }
}

/// One connection's TLS. Reads and writes as a non-blocking socket does.
pub(super) struct Session(Box<ClientConnection>);

impl Session {
    /// Goes on with the handshake; true once it is complete.
    pub(super) fn shake(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        loop {
            self.flush(stream)?;
            if !self.0.is_handshaking() {
                return Ok(true);
            }
            if !self.take(stream)? {
                return Ok(false);
            }
        }
    }

    /// Encrypts, and sends what the socket takes. The rest is sent by [`Self::flush`].
    pub(super) fn write(&mut self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.writer().write(bytes)?;
        self.flush(stream)?;
        Ok(written)
    }

    /// Sends what is encrypted, as far as the socket takes it.
    pub(super) fn flush(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        while self.0.wants_write() {
            match self.0.write_tls(stream) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads what has been decrypted.
    pub(super) fn read(&mut self, stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
            if !self.take(stream)? {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.flush(stream)?;
        }
    }

    /// Takes from the socket what is there; false if nothing is.
    fn take(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        match self.0.read_tls(stream) {
            // The peer has ended its side; the reader tells whether it said so before.
            Ok(0) if self.0.is_handshaking() => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => match self.0.process_new_packets() {
                Ok(_) => Ok(true),
                Err(error) => {
                    // The alert that says why.
                    let _ = self.flush(stream);
                    Err(io::Error::new(ErrorKind::InvalidData, error))
                }
            },
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }
}

/// Believes every certificate: for servers that have made their own. That the server has its key is checked all the same.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
