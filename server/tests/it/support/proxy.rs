//! A TCP proxy in front of a server, whose connections a test can cut.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes bytes on until it is cut; takes new connections unless it is closed.
pub struct Proxy {
    /// `http://127.0.0.1:PORT`
    pub url: String,
    target: Arc<Mutex<SocketAddr>>,
    cut: watch::Sender<u64>,
    closed: Arc<AtomicBool>,
}

impl Proxy {
    /// In front of the server at this URL.
    pub async fn start(server: &str) -> Self {
        let target = Arc::new(Mutex::new(address(server)));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let (cut, _) = watch::channel(0);
        let closed = Arc::new(AtomicBool::new(false));
        let proxy = Self {
            url,
            target: target.clone(),
            cut: cut.clone(),
            closed: closed.clone(),
        };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if closed.load(Ordering::SeqCst) {
                    continue;
                }
                let target = *target.lock().expect("no panic holds it");
                let mut cut = cut.subscribe();
                cut.mark_unchanged();
                tokio::spawn(async move {
                    tokio::select! {
                        () = pass(client, target) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        proxy
    }

    /// Breaks every connection and refuses new ones.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.cut.send_modify(|cuts| *cuts += 1);
    }

    /// Takes connections again.
    pub fn reopen(&self) {
        self.closed.store(false, Ordering::SeqCst);
    }

    /// Leads new connections to another server.
    pub fn to(&self, server: &str) {
        *self.target.lock().expect("no panic holds it") = address(server);
    }
}

fn address(server: &str) -> SocketAddr {
    let address = server.trim_start_matches("http://");
    address.parse().expect("an address")
}

async fn pass(mut client: TcpStream, target: SocketAddr) {
    if let Ok(mut server) = TcpStream::connect(target).await {
        // An end that breaks its connection is the other's matter.
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}
