use proptest::prelude::*;

use super::*;

fn fed(parts: &[&[u8]]) -> Result<Response, Malformed> {
    let mut response = Response::new(64);
    for part in parts {
        response.feed(part)?;
    }
    Ok(response)
}

const ANSWERS: [(&str, u16, &str, bool); 6] = [
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        200,
        "hello",
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n",
        200,
        "",
        false,
    ),
    ("HTTP/1.1 204 No Content\r\n\r\n", 204, "", true),
    (
        "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\nno",
        503,
        "no",
        true,
    ),
    (
        "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx",
        200,
        "x",
        false,
    ),
    (
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\nt: 1\r\n\r\n",
        200,
        "abc0123456789",
        true,
    ),
];

#[test]
fn answers_are_read_however_they_are_cut() {
    for (text, status, body, is_kept) in ANSWERS {
        let bytes = text.as_bytes();
        for end in 0..bytes.len() {
            assert!(
                !fed(&[&bytes[..end]]).expect("good so far").is_whole(),
                "{text} to {end}"
            );
            let response = fed(&[&bytes[..end], &bytes[end..]]).expect("good");
            assert!(response.is_whole(), "{text} cut at {end}");
            assert_eq!(response.status, status);
            assert_eq!(response.captured, body.as_bytes());
            assert_eq!(response.bytes, body.len() as u64);
            assert_eq!(response.is_kept, is_kept, "{text}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert!(fed(&single).expect("good").is_whole());
    }
}

#[test]
fn a_body_without_a_length_ends_with_the_connection() {
    let mut response = fed(&[b"HTTP/1.1 200 OK\r\n\r\nsome", b" bytes"]).expect("good");
    assert!(!response.is_whole());
    assert!(response.close());
    assert_eq!((response.bytes, response.is_kept), (10, false));
    let mut cut = fed(&[b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nsome"]).expect("good");
    assert!(!cut.close());
}

#[test]
fn what_is_no_answer_is_refused() {
    for bad in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n11111111111111111\r\n",
    ] {
        assert_eq!(fed(&[bad.as_bytes()]).err(), Some(Malformed), "{bad}");
    }
}

/// A peer that never ends a head or a chunk's line does not fill the memory.
#[test]
fn endless_heads_and_lines_are_refused() {
    let filler = vec![b'a'; 4_096];
    let heads = [
        ("HTTP/1.1 200 OK\r\nx: ", HEAD_MAX),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;",
            LINE_MAX,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n",
            LINE_MAX,
        ),
    ];
    for (head, limit) in heads {
        let mut response = Response::new(0);
        response.feed(head.as_bytes()).expect("good so far");
        let parts = limit / filler.len() + 2;
        let refused = (0..parts).any(|_| response.feed(&filler).is_err());
        assert!(refused, "{head}");
        assert!(response.head.len() <= HEAD_MAX + filler.len());
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 0_usize..400) {
        for head in ["", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "HTTP/1.1 200 OK\r\n"] {
            let mut response = Response::new(16);
            let cut = cut.min(bytes.len());
            let _ = response.feed(head.as_bytes());
            let _ = response.feed(&bytes[..cut]).and_then(|()| response.feed(&bytes[cut..]));
            prop_assert!(response.captured.len() <= 16);
        }
    }
}
