//! The store's process, led by the one that started it: [`super::process`] has what they say to each other.

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::spawn_blocking;

use super::link::Link;
use super::process::{APART, LINE_MAX, LISTENING};
use super::{PORT, Store};

/// The process itself: takes its token and its address from stdin, and serves until stdin is closed.
///
/// # Errors
/// The interface or the port cannot be had.
pub async fn serve() -> io::Result<()> {
    let token = told()?;
    say(APART)?;
    let Ok(address) = told()?.parse::<Ipv4Addr>() else {
        // Who started it is gone.
        return Ok(());
    };
    Link::set_up(address).await?;
    let listener = TcpListener::bind(SocketAddr::from((address, PORT))).await?;
    say(LISTENING)?;
    let store = Arc::new(Store::new(std::env::temp_dir(), token));
    tokio::select! {
        () = store.serve(listener) => {}
        ended = spawn_blocking(told) => drop(ended),
    }
    Ok(())
}

/// A line from stdin; empty at its end. Nothing is read ahead that would be lost: stdin has one buffer.
fn told() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().lock().take(LINE_MAX).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn say(word: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(format!("{word}\n").as_bytes())?;
    output.flush()
}
