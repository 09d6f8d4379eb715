//! `/fn/{name}`: bodies that come bit by bit, or are too large to come at once.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use reqwest::{Body, Method};
use serde_json::{Value, json};

use crate::support::{Lines, Server, eventually};

#[tokio::test]
async fn a_generators_first_piece_arrives_before_its_last_is_made() {
    let server = Server::start();
    let client = server.client();
    // The last line is made once the client, which has the first, has asked for it through another instance.
    let code = "import os, time\n\
        def handler(event, context):\n    \
            if event['rawPath'] == '/go':\n        \
                open('/tmp/go', 'w').close()\n        \
                return 'gone'\n    \
            def lines():\n        \
                yield 'first\\n'\n        \
                deadline = time.time() + 15\n        \
                while not os.path.exists('/tmp/go') and time.time() < deadline:\n            \
                    time.sleep(0.01)\n        \
                yield b'last\\n'\n    \
            return {'statusCode': 200, 'headers': {'content-type': 'text/plain'}, 'body': lines()}\n";
    client.deploy("streams", code, json!({})).await;
    let mut lines = Lines::open(client.request(Method::GET, "/fn/streams")).await;
    assert_eq!(lines.response.status(), 200);
    let timing = lines.response.headers()["server-timing"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(!timing.contains("total"), "it is not known yet: {timing}");
    assert_eq!(lines.next().await.as_deref(), Some("first"));
    // Another instance of the same sandbox shares its /tmp.
    client.get("/fn/streams/go").await.expect(200);
    assert_eq!(lines.next().await.as_deref(), Some("last"));
    assert_eq!(lines.next().await, None);
    let id = lines.response.headers()["x-hearth-invocation-id"]
        .to_str()
        .unwrap();
    let record = client.invocation(id).await;
    assert_eq!(record["status"], "succeeded");
    assert_eq!(record["response_bytes"], "first\nlast\n".len());
}

#[tokio::test]
async fn a_stream_that_fails_half_way_is_cut_and_recorded() {
    let server = Server::start();
    let client = server.client();
    let code = "async def pieces():\n    yield 'first'\n    raise OSError('lost')\n\
        def handler(event, context):\n    return pieces()\n";
    client.deploy("breaks", code, json!({})).await;
    let response = client
        .request(Method::GET, "/fn/breaks")
        .send()
        .await
        .expect("a head");
    assert_eq!(response.status(), 200);
    let id = response.headers()["x-hearth-invocation-id"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        response.bytes().await.is_err(),
        "the client can tell that it is not whole"
    );
    let record = client.invocation(&id).await;
    assert_eq!(record["status"], "failed");
    assert_eq!(record["error"]["errorType"], "OSError");
}

#[tokio::test]
async fn bodies_of_twenty_megabytes_pass_both_ways() {
    let server = Server::start();
    let client = server.client();
    let code = "import base64, hashlib\n\
        def handler(event, context):\n    \
            body = base64.b64decode(event['body'])\n    \
            if event['rawPath'] == '/hash':\n        return [len(body), hashlib.sha256(body).hexdigest()]\n    \
            return {'statusCode': 200, 'body': body}\n";
    client
        .deploy("large", code, json!({"memory_mb": 512}))
        .await;
    let block: Vec<u8> = (0..1 << 20)
        .map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let whole = block.repeat(20);
    let expected = {
        use sha2::{Digest, Sha256};
        let digest = Sha256::digest(&whole);
        digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let hash = client
        .request(Method::POST, "/fn/large/hash")
        .body(whole.clone());
    assert_eq!(
        client.send(hash).await.expect(200).json(),
        json!([whole.len(), expected])
    );
    // Without a length: chunked, as the pieces come.
    let pieces = stream::iter(vec![block.clone(); 20])
        .map(|piece| Ok::<_, std::io::Error>(Bytes::from(piece)));
    let echo = client
        .request(Method::POST, "/fn/large/echo")
        .body(Body::wrap_stream(pieces));
    let answer = client.send(echo).await.expect(200);
    assert!(
        answer.bytes == whole,
        "{} bytes came back",
        answer.bytes.len()
    );
    let record = client
        .invocation(answer.header("x-hearth-invocation-id"))
        .await;
    assert_eq!(record["response_bytes"], whole.len());
    assert!(record["request_bytes"].as_u64() >= Some(whole.len() as u64));
}

#[tokio::test]
async fn a_client_that_leaves_a_stream_ends_it() {
    let server = Server::start();
    let client = server.client();
    let code = "import time\ndef handler(event, context):\n    \
        if event['rawPath'] == '/quick': return 1\n    \
        return (time.sleep(0.01) or 'x' * 1000 for _ in range(100000))\n";
    client
        .deploy("endless", code, json!({"max_concurrency": 1}))
        .await;
    let mut response = client
        .request(Method::GET, "/fn/endless")
        .send()
        .await
        .unwrap();
    response.chunk().await.unwrap().expect("a first piece");
    drop(response);
    client.get("/fn/endless/quick").await.expect(200);
    let path = "/api/v1/functions/endless/invocations?status=cancelled";
    let cancelled = eventually("it is recorded", Duration::from_secs(5), || async {
        let list = client.get(path).await.expect(200).json();
        list["items"].get(0).cloned()
    })
    .await;
    assert_eq!(cancelled["error"]["errorType"], "Client.Disconnected");
    assert_ne!(cancelled["response_bytes"], Value::from(0));
}
