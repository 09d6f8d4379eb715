//! HTTP/JSON and gRPC with the usual client and server libraries, each on a single-threaded runtime. Both sides build,
//! serialise and parse messages, as a real program does.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::ensure;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use super::Way;
use crate::peers::{self, PAYLOAD, grpc, parse};
use crate::results::Samples;

/// HTTP/1.1 with a connection that is kept alive.
struct Http {
    runtime: Runtime,
    connection: SendRequest<Full<Bytes>>,
    message: peers::http::Message,
}

/// gRPC over one HTTP/2 connection.
struct Grpc {
    runtime: Runtime,
    client: grpc::Client,
    message: grpc::Message,
}

/// To the peer at this address, or to a server in this thread.
pub fn http(address: Option<&str>) -> anyhow::Result<Box<dyn Way>> {
    let runtime = runtime()?;
    let connection = runtime.block_on(async {
        let address = peer_or(address, peers::http::serve).await?;
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        anyhow::Ok(sender)
    })?;
    Ok(Box::new(Http {
        runtime,
        connection,
        message: peers::http::Message { filler: filler() },
    }))
}

/// To the peer at this address, or to a server in this thread.
pub fn grpc(address: Option<&str>) -> anyhow::Result<Box<dyn Way>> {
    let runtime = runtime()?;
    let client = runtime.block_on(async {
        let address = peer_or(address, grpc::serve).await?;
        grpc::Client::connect(address).await
    })?;
    Ok(Box::new(Grpc {
        runtime,
        client,
        message: grpc::Message { filler: filler() },
    }))
}

fn filler() -> String {
    "x".repeat(PAYLOAD - r#"{"filler":""}"#.len())
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

async fn peer_or<F>(
    address: Option<&str>,
    serve: impl FnOnce(TcpListener) -> F,
) -> anyhow::Result<SocketAddr>
where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    if let Some(address) = address {
        return parse(address);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(serve(listener));
    Ok(address)
}

impl Way for Http {
    fn turn(&mut self, count: usize, samples: &mut Samples) -> anyhow::Result<()> {
        let Self {
            runtime,
            connection,
            message,
        } = self;
        runtime.block_on(async {
            for _ in 0..count {
                let begun = Instant::now();
                connection.ready().await?;
                let body = serde_json::to_vec(message)?;
                let request = hyper::Request::post("/json")
                    .header("host", "bench")
                    .header("content-type", "application/json")
                    .body(Full::from(body))?;
                let answer = connection.send_request(request).await?;
                let body = answer.into_body().collect().await?.to_bytes();
                let echoed: peers::http::Message = serde_json::from_slice(&body)?;
                samples.push(begun.elapsed());
                ensure!(echoed == *message, "the message came back changed");
            }
            Ok(())
        })
    }
}

impl Way for Grpc {
    fn turn(&mut self, count: usize, samples: &mut Samples) -> anyhow::Result<()> {
        let Self {
            runtime,
            client,
            message,
        } = self;
        runtime.block_on(async {
            for _ in 0..count {
                let begun = Instant::now();
                let echoed = client.echo(message.clone()).await?;
                samples.push(begun.elapsed());
                ensure!(echoed == *message, "the message came back changed");
            }
            Ok(())
        })
    }
}
