//! A function's own certificate authority, and the certificates that its sandboxes see at the bound hosts.
//!
//! Its key is made out of the key file and the function's name: it is the same after a restart of the server, as is the
//! certificate in the memory of templates that are restored. It is in no sandbox, and signs for the bound hosts only.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, KeyPair, KeyUsagePurpose, NameConstraints,
    PKCS_ED25519, SerialNumber, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use zeroize::Zeroizing;

/// How a key of Ed25519 begins in PKCS #8 (RFC 8410, section 7); its seed follows.
const ED25519: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// From when until when certificates are valid: nobody but the function's own sandboxes knows them.
const VALID: (i32, i32) = (2024, 2124);
/// What both sides speak.
pub(super) const ALPN: &[u8] = b"http/1.1";
/// Characters of a line of PEM.
const LINE: usize = 64;

pub(super) struct Authority {
    pem: String,
    tls: Arc<ServerConfig>,
}

impl Authority {
    pub(super) fn new(seed: &[u8; 32], names: &BTreeSet<&str>) -> io::Result<Self> {
        let certificates = Certificates::new(seed, names).map_err(io::Error::other)?;
        let pem = certificates.authority.clone();
        let mut tls = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(certificates));
        tls.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Self {
            pem,
            tls: Arc::new(tls),
        })
    }

    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    pub(super) fn tls(&self) -> Arc<ServerConfig> {
        self.tls.clone()
    }
}

/// One for each host.
struct Certificates {
    authority: String,
    by_name: HashMap<String, Arc<CertifiedKey>>,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.by_name.keys()).finish()
    }
}

impl Certificates {
    fn new(
        seed: &[u8; 32],
        names: &BTreeSet<&str>,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let key = Zeroizing::new([&ED25519[..], seed].concat());
        let key = KeyPair::from_pkcs8_der_and_sign_algo(
            &PrivatePkcs8KeyDer::from(&key[..]),
            &PKCS_ED25519,
        )?;
        let mut params = params("Hearth: secrets of this function");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.name_constraints = Some(NameConstraints {
            permitted_subtrees: names
                .iter()
                .map(|name| GeneralSubtree::DnsName((*name).to_owned()))
                .collect(),
            excluded_subtrees: Vec::new(),
        });
        let authority = CertifiedIssuer::self_signed(params, key)?;
        let provider = default_provider();
        let mut by_name = HashMap::new();
        for name in names {
            let key = KeyPair::generate()?;
            let certificate = for_host(name)?.signed_by(&key, &authority)?;
            let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
            let certified =
                CertifiedKey::from_der(vec![certificate.der().clone()], key, &provider)?;
            by_name.insert((*name).to_owned(), Arc::new(certified));
        }
        Ok(Self {
            authority: pem(authority.der()),
            by_name,
        })
    }
}

impl ResolvesServerCert for Certificates {
    /// None for a name that is not bound: the handshake fails.
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?.to_ascii_lowercase();
        self.by_name.get(&name).cloned()
    }
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(VALID.0, 1, 1);
    params.not_after = date_time_ymd(VALID.1, 1, 1);
    params
}

fn for_host(name: &str) -> Result<CertificateParams, Box<dyn std::error::Error + Send + Sync>> {
    let mut params = params("Hearth");
    params.subject_alt_names = vec![rcgen::SanType::DnsName(name.try_into()?)];
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    // Another one for each certificate of an authority, as clients may insist on.
    let mut serial = [0; 16];
    getrandom::fill(&mut serial).map_err(|error| error.to_string())?;
    serial[0] &= 0x7f;
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    Ok(params)
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in text.as_bytes().chunks(LINE) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

#[cfg(test)]
mod tests {
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

    use super::*;

    fn names() -> BTreeSet<&'static str> {
        BTreeSet::from(["api.example.com", "b.example"])
    }

    fn accepts(pem: &str, leaf: &CertificateDer<'_>, name: &str) -> bool {
        let mut roots = rustls::RootCertStore::empty();
        let anchor = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        roots.add(anchor).unwrap();
        let verifier =
            WebPkiServerVerifier::builder_with_provider(roots.into(), default_provider().into())
                .build()
                .unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let verified = verifier.verify_server_cert(leaf, &[], &name, &[], UnixTime::now());
        verified.is_ok()
    }

    #[test]
    fn it_vouches_for_the_bound_hosts_and_for_no_other() {
        let made = Certificates::new(&[1; 32], &names()).unwrap();
        let leaf = &made.by_name["api.example.com"].cert[0];
        assert!(accepts(&made.authority, leaf, "api.example.com"));
        assert!(!accepts(&made.authority, leaf, "b.example"));
        let other = Certificates::new(&[2; 32], &names()).unwrap();
        assert!(!accepts(&other.authority, leaf, "api.example.com"));
        // Even its own key signs for no host that is not bound.
        let elsewhere = Certificates::new(&[1; 32], &BTreeSet::from(["evil.example"])).unwrap();
        let leaf = &elsewhere.by_name["evil.example"].cert[0];
        assert!(!accepts(&made.authority, leaf, "evil.example"));
    }

    #[test]
    fn it_is_the_same_after_a_restart() {
        let before = Certificates::new(&[1; 32], &names()).unwrap();
        let after = Certificates::new(&[1; 32], &names()).unwrap();
        assert_eq!(before.authority, after.authority);
        let leaf = &after.by_name["b.example"].cert[0];
        assert!(accepts(&before.authority, leaf, "b.example"));
    }
}
