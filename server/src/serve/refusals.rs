//! Canned responses written directly to a connection that is then closed.

/// There is no room for it.
pub(crate) const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n\
    Content-Length: 157\r\nRetry-After: 1\r\nConnection: close\r\n\r\n\
    {\"type\":\"urn:hearth:problem:too_many_connections\",\"title\":\"Too many connections\",\"status\":503,\
    \"code\":\"too_many_connections\",\"detail\":\"try again in a second\"}";
/// Its request's head began and did not end in time.
pub(crate) const SLOW_HEAD: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nContent-Type: application/problem+json\r\n\
    Content-Length: 180\r\nConnection: close\r\n\r\n\
    {\"type\":\"urn:hearth:problem:request_timeout\",\"title\":\"The request took too long to arrive\",\"status\":408,\
    \"code\":\"request_timeout\",\"detail\":\"the request\'s head did not come in time\"}";
/// Its request's head is too large: what the HTTP server says to one of too many lines.
pub(crate) const LARGE_HEAD: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n\
    Connection: close\r\n\r\n";
