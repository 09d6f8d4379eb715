//! What hundreds of slow clients cost the server in memory.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{connect, innocent, peak, server};
use crate::support::{Server, TOKEN, eventually};

/// Slow clients of each kind.
const OF_EACH: usize = 100;
/// What one of them may cost: its buffers, a task, and what allocators keep.
const EACH_KIB: u64 = 192;

/// What each kind of client sends before it stops, all of it far below a limit.
fn beginnings() -> Vec<(&'static str, Vec<u8>)> {
    let with = |head: &str, bytes: usize| [head.as_bytes(), &vec![b'x'; bytes]].concat();
    let form = "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000\r\n\
        Content-Type: application/x-www-form-urlencoded\r\n\r\npassword=";
    let upload = format!(
        "PUT /api/v1/functions/echo/code HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/zip\r\nContent-Length: 90000000\r\n\r\n"
    );
    vec![
        ("nothing", Vec::new()),
        (
            "half a head",
            with("GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ", 30_000),
        ),
        ("half a form", with(form, 12_000)),
        ("half an upload", with(&upload, 60_000)),
        (
            "reads nothing",
            with("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 0),
        ),
    ]
}

#[tokio::test]
async fn hundreds_of_slow_clients_cost_little_memory() {
    let (server, _client) = server("").await;
    innocent(&server).await;
    let before = peak(&server);
    let mut all: Vec<TcpStream> = Vec::new();
    for (_, first) in beginnings() {
        for _ in 0..OF_EACH {
            let mut stream = connect(&server).await;
            stream.write_all(&first).await.expect("the server reads");
            all.push(stream);
        }
    }
    read_by_the_server(&server).await;
    innocent(&server).await;
    let gained = peak(&server).saturating_sub(before);
    let most = all.len() as u64 * EACH_KIB;
    assert!(gained < most, "{gained} KiB for {} clients", all.len());
    drop(all);
}

/// Waits until nothing that was sent waits in the kernel for the server.
async fn read_by_the_server(server: &Server) {
    let port = server.url.rsplit(':').next().expect("a port");
    let port = format!("{:04X}", port.parse::<u16>().expect("a number"));
    eventually("all was read", super::TIMEOUT, || async {
        let table = std::fs::read_to_string("/proc/net/tcp").expect("the table");
        let waiting = table.lines().skip(1).filter(|line| {
            let mut words = line.split_whitespace().skip(1);
            let local = words.next().unwrap_or_default();
            let queues = words.nth(2).unwrap_or_default();
            local.ends_with(&format!(":{port}")) && !queues.ends_with(":00000000")
        });
        (waiting.count() == 0).then_some(())
    })
    .await;
}
