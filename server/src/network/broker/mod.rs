//! The broker of secrets: puts them into a function's requests, outside its sandbox. `server/docs/secrets.md` explains it.
//!
//! ```text
//! function ── resolver: the host is at BROKER ── TLS by the function's own authority ── broker ── TLS ── the host
//!             in the sandbox's network namespace                                       server    in that namespace again
//! ```
//! Only hosts that a secret is bound to lead here. Connections to all others bypass the broker.
//!
//! - [`authority`]: certificates for the bound hosts. [`trust`]: whose certificates the hosts may have.
//! - [`credential`]: a secret in a header. [`forward`]: one request. [`upstream`]: connections to a host.
//! - [`serve`]: connections of a function. [`deadlines`]: how long either side is waited for. [`timely`]: streams and bodies
//!   that are given up then.

mod authority;
mod credential;
mod deadlines;
mod forward;
mod serve;
mod timely;
mod trust;
mod upstream;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use rustls::ServerConfig;

pub use self::deadlines::Deadlines;
pub use self::serve::{Listener, serve};
pub use self::trust::Trust;

use self::authority::Authority;
use self::credential::Credential;
use crate::model::{BoundHost, SecretBinding};
use crate::sandbox::NetworkError;
use crate::secrets::Secrets;

/// How the broker reaches hosts from inside a sandbox.
pub trait Reach: Send + Sync + 'static {
    /// Addresses of a name that may be connected to now.
    fn addresses(&self, name: &str) -> impl Future<Output = Vec<IpAddr>> + Send;

    /// Starts a connection in the sandbox's network namespace.
    fn dial(
        &self,
        to: SocketAddr,
    ) -> impl Future<Output = Result<std::net::TcpStream, NetworkError>> + Send;
}

/// The brokered secrets of one version of a function.
pub struct Broker {
    function: String,
    bound: BTreeMap<BoundHost, Vec<Credential>>,
    secrets: Secrets,
    authority: OnceLock<Authority>,
}

impl Broker {
    /// The broker for these bindings; none if no secret of them is brokered.
    pub fn new(function: &str, bindings: &[SecretBinding], secrets: &Secrets) -> Option<Arc<Self>> {
        let mut bound: BTreeMap<BoundHost, Vec<Credential>> = BTreeMap::new();
        for binding in bindings {
            if let Some((host, credential)) = Credential::of(binding) {
                bound.entry(host).or_default().push(credential);
            }
        }
        (!bound.is_empty()).then(|| {
            Arc::new(Self {
                function: function.to_owned(),
                bound,
                secrets: secrets.clone(),
                authority: OnceLock::new(),
            })
        })
    }

    /// The certificate that a sandbox has to trust, PEM.
    ///
    /// # Errors
    /// When it cannot be made, for want of randomness.
    pub fn certificate(&self) -> io::Result<&str> {
        Ok(self.authority()?.pem())
    }

    fn authority(&self) -> io::Result<&Authority> {
        if let Some(made) = self.authority.get() {
            return Ok(made);
        }
        let names: BTreeSet<&str> = self.bound.keys().map(|host| host.name.as_str()).collect();
        // The function's, and not the sandbox's: a template that is restored has it in its memory.
        let words: [&[u8]; 2] = [b"authority", self.function.as_bytes()];
        let made = Authority::new(&self.secrets.seed(&words), &names)?;
        Ok(self.authority.get_or_init(|| made))
    }

    fn tls(&self) -> io::Result<Arc<ServerConfig>> {
        Ok(self.authority()?.tls())
    }

    /// Whether a secret is bound to a host of this name.
    pub(super) fn is_bound(&self, name: &str) -> bool {
        self.bound.keys().any(|host| host.name == name)
    }

    /// Ports to listen at.
    pub(super) fn ports(&self) -> BTreeSet<u16> {
        self.bound.keys().map(|host| host.port).collect()
    }
}
