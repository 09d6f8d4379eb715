//! Pages of the console with a large database: 1,000 functions, 10 million invocations, 2 million log lines, seven days
//! of statistics. One client sends one request after the other, as a user's browser does.

mod database;
mod filling;
mod pages;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use hearth_testkit::wait::poll;

use crate::client::{Connection, TOKEN};
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::Server;

pub use database::Extent;
use pages::Page;

/// What the report calls the pages.
pub const PAGES: &str = "whole pages";
/// What the report calls what htmx asks for.
pub const PARTIALS: &str = "parts of pages";
/// The start of a server with that database.
pub const START: &str = "start";

/// Requests of each page, and of each in a quick run.
const REQUESTS: [usize; 2] = [60, 3];
/// How long the server may take until all functions are up: it boots their templates one after the other.
const BROUGHT_UP: Duration = Duration::from_secs(900);
/// No function came up for this long: there is no room for more.
const SETTLED: Duration = Duration::from_secs(5);

/// Measures each page.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let extent = scale.pick(Extent::WHOLE, Extent::QUICK);
    let data = database::prepare(&extent).context("prepare the database")?;
    let begun = Instant::now();
    let server = Server::start_in(data.path.clone(), &[])?;
    let listening = begun.elapsed();
    document.figure(START, "to listening", millis(listening), "ms");
    for (name, value, unit) in data.figures() {
        document.figure("database", name, value, unit);
    }
    wait_until(
        server.address,
        "ready",
        &pages::get("/readyz", "", false),
        |_| true,
    )?;
    document.figure(START, "to ready", millis(begun.elapsed()), "ms");

    let cookie = log_in(server.address)?;
    // Functions that nobody calls come up in the background, which is not what is measured here.
    let list = pages::get("/api/v1/functions", &cookie, false);
    let mut asleep = (usize::MAX, Instant::now());
    wait_until(server.address, "done with its functions", &list, |body| {
        let now = body.matches("\"state\":\"asleep\"").count();
        if now != asleep.0 {
            asleep = (now, Instant::now());
        }
        now == 0 || asleep.1.elapsed() > SETTLED
    })?;
    let requests = scale.pick(REQUESTS[0], REQUESTS[1]);
    for page in pages::all(&server, &data)? {
        match measure(server.address, &cookie, &page, requests)? {
            Some(samples) => {
                document.add(page.category(), &page.name, samples);
            }
            None => document.skip(&page.name, "this version of Hearth has no such page"),
        }
    }
    Ok(())
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Asks for a page again and again; none when it is not there.
fn measure(
    address: SocketAddr,
    cookie: &str,
    page: &Page,
    requests: usize,
) -> anyhow::Result<Option<Samples>> {
    let request = page.request(cookie);
    let mut connection = Connection::open(address)?;
    let mut samples = Samples::default();
    // One more, for the caches: a person comes from the page before.
    for number in 0..=requests {
        let begun = Instant::now();
        let answer = connection.exchange(&request)?;
        let taken = begun.elapsed();
        match answer.status {
            200 => {}
            404 => return Ok(None),
            other => bail!("{} answers {other}", page.path),
        }
        if let Some(mark) = &page.holds {
            let body = String::from_utf8_lossy(answer.body);
            anyhow::ensure!(body.contains(mark), "{} has no {mark} in it", page.path);
        }
        if number > 0 {
            samples.push(taken);
        }
    }
    Ok(Some(samples))
}

/// Asks until the answer is 200 and as it should be.
fn wait_until(
    address: SocketAddr,
    what: &str,
    request: &[u8],
    mut is_good: impl FnMut(&str) -> bool,
) -> anyhow::Result<()> {
    let mut look = || -> anyhow::Result<bool> {
        let mut connection = Connection::open(address)?;
        let answer = connection.exchange(request)?;
        Ok(answer.status == 200 && is_good(&String::from_utf8_lossy(answer.body)))
    };
    let good = poll(BROUGHT_UP, Duration::from_millis(200), || {
        look().map(|is_good| is_good.then_some(())).transpose()
    });
    good.with_context(|| format!("the server is not {what} after {} s", BROUGHT_UP.as_secs()))?
}

/// Opens a session with the token; what to send as `Cookie`.
fn log_in(address: SocketAddr) -> anyhow::Result<String> {
    let body = format!("token={TOKEN}");
    let request = format!(
        "POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-www-form-urlencoded\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut connection = Connection::open(address)?;
    let answer = connection.exchange(request.as_bytes())?;
    let cookie = answer.header("set-cookie").context("no session")?;
    let cookie = cookie.split(';').next().unwrap_or_default();
    Ok(cookie.to_owned())
}
