//! What is said to a connection without HTTP's help: whole answers, after which it is closed.

/// There is no room for it.
pub(super) const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n\
    Content-Length: 157\r\nRetry-After: 1\r\nConnection: close\r\n\r\n\
    {\"type\":\"urn:hearth:problem:too_many_connections\",\"title\":\"Too many connections\",\"status\":503,\
    \"code\":\"too_many_connections\",\"detail\":\"try again in a second\"}";
/// Its request's head began and did not end in time.
pub(super) const SLOW_HEAD: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nContent-Type: application/problem+json\r\n\
    Content-Length: 180\r\nConnection: close\r\n\r\n\
    {\"type\":\"urn:hearth:problem:request_timeout\",\"title\":\"The request took too long to arrive\",\"status\":408,\
    \"code\":\"request_timeout\",\"detail\":\"the request\'s head did not come in time\"}";
/// Its request's head is too large: what the HTTP server says to one of too many lines.
pub(super) const LARGE_HEAD: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n\
    Connection: close\r\n\r\n";

#[cfg(test)]
mod tests {
    use crate::http::problem::Code;

    #[test]
    fn refusals_are_whole_and_of_the_catalogue() {
        for (refusal, code) in [
            (super::FULL, Some(Code::TooManyConnections)),
            (super::SLOW_HEAD, Some(Code::RequestTimeout)),
            (super::LARGE_HEAD, None),
        ] {
            let text = std::str::from_utf8(refusal).expect("text");
            let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
            assert!(
                format!("{head}\r\n").contains(&format!("Content-Length: {}\r\n", body.len())),
                "{} bytes: {head}",
                body.len()
            );
            assert!(head.contains("Connection: close"));
            let Some(code) = code else {
                assert!(body.is_empty());
                continue;
            };
            let problem: serde_json::Value = serde_json::from_str(body).expect("JSON");
            assert_eq!(problem["status"], code.status().as_u16());
            assert_eq!(problem["code"], code.name());
            assert_eq!(problem["type"], code.type_uri());
            assert_eq!(problem["title"], code.title());
            let status = format!("HTTP/1.1 {}", code.status());
            assert!(head.starts_with(&status), "{head}");
        }
    }
}
