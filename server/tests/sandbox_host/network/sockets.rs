//! Sockets that the host process makes in a sandbox's network namespace, for the broker.

use std::net::SocketAddr;

use hearth::sandbox::{BROKER, KernelPolicy, NetworkError, Outbound, Protocol};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::world::{HOST, OTHER_TCP, PRIVATE, PUBLIC, TCP, World, harness, to, with_policy};
use crate::harness::fresh_pair;

/// A port that nothing else listens at.
const PORT: u16 = 7443;

/// Connects from inside the sandbox: what comes back, or the error.
async fn attempt(outbound: &Outbound, address: &str, port: u16) -> Result<String, NetworkError> {
    let to = SocketAddr::new(address.parse().expect("an address"), port);
    let mut stream = TcpStream::from_std(outbound.dial(to).await?).expect("a stream");
    stream.writable().await.expect("an end");
    if let Some(error) = stream.take_error().expect("a state") {
        return Ok(format!("{:?}", error.kind()));
    }
    stream.write_all(b"ping").await.expect("sent");
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes).await.expect("an echo");
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// They reach what the sandbox does, and nothing else, and count as its own.
#[tokio::test]
async fn a_socket_is_subject_to_the_policy() {
    let _world = World::enter();
    let harness = harness();
    let policy = KernelPolicy {
        allow: vec![
            to(PUBLIC[0], 32, Protocol::Tcp, TCP),
            to(PUBLIC[2], 128, Protocol::Tcp, TCP),
        ],
        ..KernelPolicy::default()
    };
    let sandbox = with_policy(&harness, policy).await;
    let outbound = sandbox.live.outbound.as_ref().expect("a way out");
    for address in [PUBLIC[0], PUBLIC[2]] {
        let echo = attempt(outbound, address, TCP).await;
        assert_eq!(echo.expect("a connection"), "ping", "{address}");
    }
    let counted = outbound.counters().await.expect("counters");
    assert_eq!(counted.connections, 2);
    let refused = [(PUBLIC[0], OTHER_TCP), (PUBLIC[1], TCP), (PUBLIC[3], TCP)];
    let never = PRIVATE
        .into_iter()
        .chain(HOST)
        .map(|address| (address, TCP));
    for (address, port) in refused.into_iter().chain(never) {
        let answer = attempt(outbound, address, port).await;
        // At once, or when it is tried.
        let is_refused = match &answer {
            Ok(answer) => ["HostUnreachable", "ConnectionRefused"].contains(&answer.as_str()),
            Err(error) => !error.is_gone(),
        };
        assert!(is_refused, "{address} {port}: {answer:?}");
    }
    harness.end(sandbox).await;
}

/// At the broker's address in the sandbox, which nobody else reaches; a port is taken once.
#[tokio::test]
async fn a_listener_is_for_its_sandbox_alone() {
    let _world = World::enter();
    let harness = harness();
    let one = with_policy(&harness, KernelPolicy::default()).await;
    let mut spec = harness.spec();
    (spec.uid_base, spec.network) = (fresh_pair(), Some(KernelPolicy::default()));
    let other = harness.create_from(spec).await;
    let outbound = one.live.outbound.as_ref().expect("a way out");
    let listener = outbound.listen(PORT).await.expect("a listener");
    assert!(
        outbound
            .listen(PORT)
            .await
            .is_err_and(|error| !error.is_gone())
    );
    let listener = TcpListener::from_std(listener).expect("a listener");
    let broker = BROKER.to_string();
    let (echo, ()) = tokio::join!(one.attempt("tcp", &broker, PORT), async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut bytes = [0; 4];
        stream.read_exact(&mut bytes).await.expect("read");
        stream.write_all(&bytes).await.expect("sent");
    });
    assert_eq!(echo, "ping");
    assert_eq!(other.attempt("tcp", &broker, PORT).await, "ECONNREFUSED");
    assert_eq!(one.attempt("tcp", &broker, OTHER_TCP).await, "ECONNREFUSED");
    assert!(
        std::net::TcpStream::connect((BROKER, PORT)).is_err(),
        "not from the host"
    );
    other.live.destroy().await;
    harness.end(one).await;
}
