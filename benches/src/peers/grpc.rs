//! A gRPC method that echoes its message. Message type and service are written by hand: generated code would be the
//! same, and need protoc to build.

use std::convert::Infallible;
use std::future::Ready;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

/// `message Message { string filler = 1; }`
#[derive(Clone, PartialEq, prost::Message)]
pub struct Message {
    /// Makes up the size.
    #[prost(string, tag = "1")]
    pub filler: String,
}

/// `service Echo { rpc Echo(Message) returns (Message); }`
#[derive(Debug, Clone, Copy)]
struct Echo;

const SERVICE: &str = "hearth.bench.Echo";
const METHOD: &str = "/hearth.bench.Echo/Echo";

impl tower::Service<Request<Message>> for Echo {
    type Response = Response<Message>;
    type Error = Status;
    type Future = Ready<Result<Response<Message>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Message>) -> Self::Future {
        std::future::ready(Ok(Response::new(request.into_inner())))
    }
}

/// The service as the transport sees it.
#[derive(Debug, Clone, Copy)]
struct Served(Echo);

impl tonic::server::NamedService for Served {
    const NAME: &'static str = SERVICE;
}

impl tower::Service<hyper::http::Request<Body>> for Served {
    type Response = hyper::http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: hyper::http::Request<Body>) -> Self::Future {
        let Self(echo) = *self;
        Box::pin(async move {
            if request.uri().path() != METHOD {
                return Ok(Status::unimplemented(METHOD).into_http());
            }
            let codec = ProstCodec::<Message, Message>::default();
            Ok(tonic::server::Grpc::new(codec).unary(echo, request).await)
        })
    }
}

/// Serves until the process is killed.
pub async fn serve(listener: tokio::net::TcpListener) -> anyhow::Result<()> {
    let connections = tokio_stream::wrappers::TcpListenerStream::new(listener);
    let connections = tokio_stream::StreamExt::map(connections, |connection| {
        connection.and_then(|connection| connection.set_nodelay(true).map(|()| connection))
    });
    Server::builder()
        .serve_with_incoming(Served(Echo), connections)
        .await?;
    Ok(())
}

/// A client of [`serve`].
#[derive(Debug)]
pub struct Client(tonic::client::Grpc<Channel>);

impl Client {
    /// Connects.
    pub async fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let channel = Endpoint::try_from(format!("http://{address}"))?
            .tcp_nodelay(true)
            .connect()
            .await?;
        Ok(Self(tonic::client::Grpc::new(channel)))
    }

    /// Sends a message and gives back what comes.
    pub async fn echo(&mut self, message: Message) -> anyhow::Result<Message> {
        self.0.ready().await?;
        let codec = ProstCodec::<Message, Message>::default();
        let path = hyper::http::uri::PathAndQuery::from_static(METHOD);
        let answer = self.0.unary(Request::new(message), path, codec).await?;
        Ok(answer.into_inner())
    }
}
