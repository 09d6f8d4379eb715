//! A small HTTP client for a REST API.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A deploy compiles a package and boots an interpreter.
const WITHIN: Duration = Duration::from_mins(3);

/// Longest answer: a version's code.
const ANSWER_MAX: usize = 256 << 20;

/// Why a request to the API failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is not one of a server.
    #[error("{0:?} is not an address of a server, such as http://127.0.0.1:8080")]
    Address(String),
    /// No whole answer.
    #[error("{0}: {1}")]
    Transport(String, String),
    /// No whole answer within the time limit.
    #[error("{0}: no answer within {1:?}")]
    Timeout(String, Duration),
    /// The server refuses the request.
    #[error("{request}: {status} {detail}")]
    Refused {
        /// Method and path.
        request: String,
        /// HTTP status.
        status: StatusCode,
        /// The problem's detail.
        detail: String,
    },
}

/// An answer with a good status.
#[derive(Debug)]
pub struct Answer {
    /// Headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Speaks with one server. Each request has a connection of its own.
#[derive(Clone)]
pub struct Client {
    authority: String,
    address: (String, u16),
    token: String,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the token.
        f.debug_struct("Client")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// For the server at an address such as `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// An address that is none, or has a path.
    pub fn new(server: &str, token: &str) -> Result<Self, ClientError> {
        let bad = || ClientError::Address(server.to_owned());
        let uri: Uri = server.parse().map_err(|_| bad())?;
        let authority = uri.authority().ok_or_else(bad)?;
        let has_path = uri
            .path_and_query()
            .is_some_and(|path| path.as_str() != "/");
        if uri.scheme_str() != Some("http") || has_path || authority.as_str().contains('@') {
            return Err(bad());
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        Ok(Self {
            authority: authority.to_string(),
            address: (host, authority.port_u16().unwrap_or(80)),
            token: token.to_owned(),
        })
    }

    /// The server's address with this path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.authority)
    }

    /// The `Authorization` header's value.
    pub fn authorization(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// Sends a request and reads the answer.
    ///
    /// # Errors
    /// As [`ClientError`] has them; a status that is not 2xx is [`ClientError::Refused`].
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        content: Option<(&str, Vec<u8>)>,
    ) -> Result<Answer, ClientError> {
        self.send_within(method, path, content, WITHIN).await
    }

    /// [`Self::send`] with this time limit, for what takes no deploy.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn send_within(
        &self,
        method: Method,
        path: &str,
        content: Option<(&str, Vec<u8>)>,
        within: Duration,
    ) -> Result<Answer, ClientError> {
        let name = format!("{method} {path}");
        let sent = self.exchange(method, path, content);
        let Ok(done) = timeout(within, sent).await else {
            return Err(ClientError::Timeout(name, within));
        };
        let (status, answer) =
            done.map_err(|error| ClientError::Transport(name.clone(), error.to_string()))?;
        if status.is_success() {
            return Ok(answer);
        }
        let problem = answer.json();
        let detail = ["detail", "title"]
            .iter()
            .find_map(|field| problem[*field].as_str());
        let detail = detail.map_or_else(
            || String::from_utf8_lossy(&answer.body).into_owned(),
            str::to_owned,
        );
        Err(ClientError::Refused {
            request: name,
            status,
            detail,
        })
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        content: Option<(&str, Vec<u8>)>,
    ) -> Result<(StatusCode, Answer), Box<dyn std::error::Error + Send + Sync>> {
        let (host, port) = &self.address;
        let stream = TcpStream::connect((host.as_str(), *port)).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.authority)
            .header(AUTHORIZATION, self.authorization());
        let mut body = Bytes::new();
        if let Some((media_type, bytes)) = content {
            request = request.header(CONTENT_TYPE, media_type);
            body = bytes.into();
        }
        let request = request.body(Full::new(body))?;
        let exchange = async {
            let (head, body) = sender.send_request(request).await?.into_parts();
            let body = Limited::new(body, ANSWER_MAX).collect().await?.to_bytes();
            let answer = Answer {
                headers: head.headers,
                body,
            };
            Ok((head.status, answer))
        };
        // The connection works only while it is polled, and goes with this future.
        tokio::pin!(exchange, connection);
        tokio::select! {
            biased;
            done = &mut exchange => done,
            ended = &mut connection => match ended {
                // What it had read before it ended is there.
                Ok(()) => exchange.await,
                Err(error) => Err(error.into()),
            },
        }
    }
}

/// A name as a part of an address (RFC 3986, unreserved characters).
pub(crate) fn encoded(name: &str) -> String {
    name.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text += &format!("%{byte:02X}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_servers_are_taken() {
        let client = Client::new("http://[::1]:8080/", "secret").expect("an address");
        assert_eq!(client.url("/fn/x"), "http://[::1]:8080/fn/x");
        assert!(!format!("{client:?}").contains("secret"));
        for bad in [
            "",
            "localhost",
            "localhost:8080",
            "https://a/",
            "http://a/b",
            "http://u@a",
        ] {
            assert!(
                matches!(Client::new(bad, ""), Err(ClientError::Address(_))),
                "{bad}"
            );
        }
    }
}
