//! The broker of secrets between a function and a host that are both the test's: what either may do to it, and how long.

mod hostile;
mod stalled;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hearth::model::SecretBinding;
use hearth::network::broker::{self, Broker, Deadlines, Listener, Reach, Trust};
use hearth::sandbox::NetworkError;
use hearth::secrets::Secrets;
use hearth::store::Store;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};
use tokio_util::sync::{CancellationToken, DropGuard};

const NAME: &str = "api.example.com";
const SECRET: &str = "sk_live_Tq7vXw2mZr9pLk4s";
/// Longer than any test takes: what ends is ended by a deadline that the test has made shorter.
const PATIENT: Duration = Duration::from_secs(3600);
/// Within this everything ends that is to end.
const LIMIT: Duration = Duration::from_secs(60);

/// Deadlines that no test meets.
const NONE: Deadlines = Deadlines {
    handshake: PATIENT,
    request_head: PATIENT,
    request_body: PATIENT,
    connect: PATIENT,
    response_head: PATIENT,
    response_body: PATIENT,
    write: PATIENT,
};

/// The host that a secret is bound to.
struct Host {
    listener: TcpListener,
    tls: TlsAcceptor,
    authority: CertificateDer<'static>,
}

impl Host {
    async fn start() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![NAME.to_owned()]).expect("a name");
        let leaf = params.signed_by(&key, &authority).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)
            .expect("a configuration");
        Self {
            listener: TcpListener::bind(("127.0.0.1", 0))
                .await
                .expect("a listener"),
            tls: TlsAcceptor::from(Arc::new(config)),
            authority: authority.der().clone(),
        }
    }

    fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("an address")
    }

    /// The broker's next connection.
    async fn accept(&self) -> server::TlsStream<TcpStream> {
        let (stream, _) = ends(self.listener.accept()).await.expect("a connection");
        ends(self.tls.accept(stream)).await.expect("a handshake")
    }
}

/// The way to one address, whatever is asked for.
struct Only(SocketAddr);

impl Reach for Only {
    async fn addresses(&self, _: &str) -> Vec<IpAddr> {
        vec![self.0.ip()]
    }

    async fn dial(&self, _: SocketAddr) -> Result<std::net::TcpStream, NetworkError> {
        Ok(begin(self.0).expect("a socket"))
    }
}

/// Begins to connect, as the host process does.
fn begin(to: SocketAddr) -> io::Result<std::net::TcpStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

/// A broker, and where a function finds it.
struct Setting {
    address: SocketAddr,
    function: Arc<ClientConfig>,
    _serving: DropGuard,
    _dir: tempfile::TempDir,
}

impl Setting {
    /// A broker between a function and this host.
    async fn new(host: &Host, deadlines: Deadlines) -> Self {
        Self::towards(
            host.address(),
            Trust::of(vec![host.authority.clone()]),
            deadlines,
        )
        .await
    }

    async fn towards(host: SocketAddr, trust: Trust, deadlines: Deadlines) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let database = dir.path().join("hearth.db");
        let store = Store::open(&database).await.expect("a database");
        let secrets = Secrets::open(dir.path(), store).await.expect("a key");
        secrets.put("stripe", SECRET).await.expect("a secret");
        let binding = serde_json::json!({
            "secret": "stripe", "host": NAME, "header": "Authorization", "format": "Bearer {}",
        });
        let binding: SecretBinding = serde_json::from_value(binding).expect("a binding");
        let broker = Broker::new("f", &[binding], &secrets).expect("a broker");
        let socket = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let address = socket.local_addr().expect("an address");
        let listener = Listener { port: 443, socket };
        let mut roots = RootCertStore::empty();
        let pem = broker.certificate().expect("a certificate");
        let root = CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
        roots.add(root).expect("an authority");
        let function = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let ended = CancellationToken::new();
        let reach = Arc::new(Only(host));
        broker::serve(broker, reach, trust, deadlines, vec![listener], &ended).expect("a broker");
        Self {
            address,
            function: Arc::new(function),
            _serving: ended.drop_guard(),
            _dir: dir,
        }
    }

    /// A function's connection, before it says anything.
    async fn connect(&self) -> TcpStream {
        let stream = ends(TcpStream::connect(self.address)).await;
        stream.expect("a connection")
    }

    /// A function's connection to the bound host.
    async fn client(&self) -> client::TlsStream<TcpStream> {
        let stream = self.connect().await;
        let connector = TlsConnector::from(self.function.clone());
        let name = ServerName::try_from(NAME).expect("a name");
        let stream = ends(connector.connect(name, stream)).await;
        stream.expect("a handshake")
    }
}

/// What has to end by itself.
async fn ends<T>(what: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(LIMIT, what).await;
    ended.expect("it goes on and on")
}

/// All that comes until the other side closes or resets.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    let _ = ends(stream.read_to_end(&mut bytes)).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What comes until the end of a head.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let byte = ends(stream.read_u8()).await;
        bytes.push(byte.expect("a whole head"));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
