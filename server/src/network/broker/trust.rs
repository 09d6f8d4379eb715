//! The certificate authorities that bound hosts' certificates are verified with: those that the machine trusts.

use std::sync::{Arc, OnceLock};

use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use super::authority::ALPN;

/// They name other certificates than the machine's own, as for OpenSSL.
const VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// See the module. Cheap to clone.
#[derive(Clone, Default)]
pub struct Trust(Arc<OnceLock<Arc<ClientConfig>>>);

impl Trust {
    /// The machine's: read when first needed. If the environment names other files, they are read now, since they may be
    /// inaccessible later.
    #[must_use]
    pub fn of_machine() -> Self {
        let trust = Self::default();
        if VARIABLES
            .iter()
            .any(|name| std::env::var_os(name).is_some())
        {
            trust.client();
        }
        trust
    }

    /// These authorities.
    #[must_use]
    pub fn of(certificates: Vec<CertificateDer<'static>>) -> Self {
        Self(Arc::new(OnceLock::from(Arc::new(trusting(certificates)))))
    }

    /// The TLS configuration for connections that speak something else than HTTP.
    #[must_use]
    pub fn without_alpn(&self) -> Arc<ClientConfig> {
        let mut client = (*self.client()).clone();
        client.alpn_protocols.clear();
        Arc::new(client)
    }

    /// The TLS configuration for connections to hosts.
    pub(super) fn client(&self) -> Arc<ClientConfig> {
        self.0.get_or_init(|| Arc::new(read())).clone()
    }
}

fn read() -> ClientConfig {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "certificates that this machine trusts");
    }
    trusting(found.certs)
}

fn trusting(certificates: Vec<CertificateDer<'static>>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let (taken, _) = roots.add_parsable_certificates(certificates);
    if taken == 0 {
        tracing::warn!("this machine trusts no certificate: requests with brokered secrets fail");
    }
    let versions = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(rustls::DEFAULT_VERSIONS);
    // The provider has suites for both versions of TLS.
    #[allow(clippy::expect_used)]
    let mut client = versions
        .expect("the provider speaks TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![ALPN.to_vec()];
    client
}
