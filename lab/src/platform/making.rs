//! Functions that a server was asked to make, and whether it has said that they are there.

use std::sync::{MutexGuard, PoisonError};

use hyper::Method;

use super::client::{Answer, ClientError};
use super::hearth::Hearth;

impl Hearth {
    /// Asks for a function. Its name is known from before that, so that it is removed whatever comes of it.
    pub(super) async fn make(
        &self,
        name: &str,
        path: &str,
        content: (&str, Vec<u8>),
    ) -> Result<Answer, ClientError> {
        self.names().push(name.to_owned());
        self.waiting().push(name.to_owned());
        let made = self.client().send(Method::POST, path, Some(content)).await;
        // Not if this was dropped before, or the server has only not answered in time.
        if matches!(made, Ok(_) | Err(ClientError::Refused { .. })) {
            self.answered(name);
        }
        made
    }

    /// Whether it may yet come to be, though it is not there.
    pub(super) fn may_come(&self, name: &str) -> bool {
        self.waiting().iter().any(|one| one == name)
    }

    pub(super) fn answered(&self, name: &str) {
        self.waiting().retain(|one| one != name);
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<String>> {
        // Nothing panics while it is held.
        let waiting = self.unanswered.lock();
        waiting.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::platform::client::Client;

    /// A request's head; its body, which is `{}` where it has one, is read, too, so that the connection ends well.
    fn head(stream: &mut TcpStream) -> String {
        let (mut text, mut byte) = (String::new(), [0]);
        while !text.ends_with("\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
            text.push(char::from(byte[0]));
        }
        if text.starts_with("POST") {
            let mut body = [0; 2];
            let _ = stream.read_exact(&mut body);
        }
        text
    }

    /// A server that never answers a request for a function, whose function is there from the third removal on. Returns its address and how
    /// many removals came.
    fn slow_server(refuses: bool) -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let removals = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&removals);
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.expect("a client");
                let status = match head(&mut stream).starts_with("DELETE") {
                    true if counted.fetch_add(1, Ordering::Relaxed) < 2 => "404 Not Found",
                    true => "200 OK",
                    false if refuses => "422 Unprocessable Content",
                    false => {
                        held.push(stream);
                        continue;
                    }
                };
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}");
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        (address, removals)
    }

    /// One that was asked for a copy, and waited for so long.
    async fn copied(address: &str, within: Duration) -> Hearth {
        let hearth = Hearth::new(Client::new(address, "secret").expect("an address"));
        let asked = json!({});
        let copy = hearth.copy("hello", "lab-1", &asked);
        let given_up = tokio::time::timeout(within, copy).await;
        assert!(!matches!(given_up, Ok(Ok(_))));
        hearth
    }

    #[tokio::test]
    async fn what_was_asked_for_and_not_waited_for_is_removed_when_it_comes() {
        let (address, removals) = slow_server(false);
        let hearth = copied(&address, Duration::from_millis(200)).await;
        hearth.remove_all().await.expect("removed");
        assert_eq!(removals.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn what_was_refused_is_not_waited_for() {
        let (address, removals) = slow_server(true);
        let hearth = copied(&address, Duration::from_secs(60)).await;
        hearth.remove_all().await.expect("removed");
        assert_eq!(removals.load(Ordering::Relaxed), 1);
    }
}
