//! The page: the machine, the goals, then each suite with its plots and tables.

use std::fmt::Write as _;

use super::format::{number, percentile, time};
use super::{Documents, audit, curve, goals, lengths};
use crate::results::Document;
use crate::suites::ingress::datagrams;
use crate::suites::ingress::flood::{self, PACKETS};
use crate::suites::warm::CPU;

/// Unit of the figures that stand in the table of latencies.
const RATE: &str = "requests/s";
/// The columns of figures that a category may have beside its latencies: unit, and what stands above.
const COLUMNS: [(&str, &str); 5] = [
    (RATE, RATE),
    (CPU, "CPU per request, µs"),
    ("datagrams/s", "datagrams/s"),
    (datagrams::CPU, "CPU per datagram, µs"),
    (PACKETS, "flood, packets/s"),
];

/// What is to be known of each suite before its figures are read.
const INTRODUCTIONS: [(&str, &str); 12] = [
    (
        "ring",
        "The shared-memory ring alone, then a round trip of 1 KB over every common transport. Where reading the clock \
         would distort the result, a sample is the mean of 64 repetitions, and a percentile is one of such means. \
         HTTP and gRPC build, serialise and parse their message on both sides; sockets and the ring carry bytes. \
         Processor speed and the latency between processors vary over time: the yardstick beside a row shows when it \
         was measured.",
    ),
    (
        "starts",
        "Starts, one after the other. `fork() to READY` is from the FORK message to the instance's READY, measured \
         inside the engine, without a pre-forked instance. First requests are measured by the client, and the \
         instance is killed from outside after each. They find a template and its pre-forked instance, as a user's \
         requests do; \"no pre-forked instance\" is the same with `HEARTH_PREFORK=off`. The usual imports are json, asyncio \
         and http for Python, and http, crypto and fs for Node. The floor is a plain C `fork()` of a process with the \
         same imports, to the child's first byte in a pipe. While a function with an image sleeps, the server keeps \
         one pre-warmed sandbox for its runtime (`HEARTH_PREWARM`); \"pre-warmed sandbox\" uses it, as a user's \
         restore does unless another took it less than a second before, and \"no pre-warmed sandbox\" does not.",
    ),
    (
        "warm",
        "Closed loop: each connection sends its next request after the response to the last one. One thread for every \
         two processors serves all connections with epoll, and shares the machine with the servers, which take turns \
         within the run. All but Hearth echo the bytes in their own process; Hearth checks a token, passes the event \
         as an object to a sandboxed process and writes the history. At 0 B its event is `{}`. Uvicorn and Node are \
         one process, functions-framework starts gunicorn, axum uses all cores. The floor is a blocking thread per \
         connection that only finds the end of a request. CPU per request is user and system time of a server and all \
         its processes, including the kernel's work for its sockets but not the client's, divided by the requests \
         answered; below one core's worth, idle time is not counted. Hearth appears twice: with defaults, and with \
         `HEARTH_BUSY_POLL_US=0`, where neither side spins before it sleeps.",
    ),
    (
        "uploads",
        "One client sends 100 MB to a function's URL, and the same to a server that is nothing but the language's own HTTP \
         server, in turns. Both take the whole body and answer how long it is; the function gets it as bytes.",
    ),
    (
        "bursts",
        "One thread sends all requests at once, each on its own open connection; the latency is each request's own. \
         Cold: there is only the template. Warm: there is an idle instance for each request. With a run time of 0 s \
         it is right not to start an instance for each.",
    ),
    (
        "busy",
        "Calls while one process for each processor does nothing but compute, and the same on a quiet host, in turns of a \
         second. The functions and the servers that are compared with send back what they get, or read \
         `/proc/self/status` first, off their thread. Node's first reads are by the handler's own clock: of a Node.js that \
         was just started with a script, and of an instance that was just forked, with the slowest of its next 19.",
    ),
    (
        "slow",
        "One client calls a Python function over one connection, by itself and beside 500 deliberately slow clients: \
         silent, dripping a byte every 200 ms into request line, head, body or chunk, not reading a function's \
         response or an event stream, idle after a request. Clients that the server cuts off reconnect. Interleaved.",
    ),
    (
        "network",
        "The same client and servers, in turns: in a sandbox, whose packets pass its policy, the gateway and the host's own \
         namespace, which translates their address; and in a namespace that one veth pair joins to the servers'. A policy costs \
         two hops more and its rules. A ratio is the median of those of single rounds, from and to is the interval that holds it \
         with 95 %. The functions with a policy and without reach for nothing: what is compared is the sandbox's network by \
         itself.",
    ),
    (
        "ingress",
        "The XDP program by `BPF_PROG_TEST_RUN`: the kernel runs it again and again on one packet and says the mean, so that \
         code and records are in the processor's caches; the loop itself is part of it. The ports are shared by as many \
         functions, 1,000 at most, all with a limit for each source and one for all, which are never reached. Limits hold for \
         what starts work, SYNs and datagrams. The flood comes from 256 sources, of which each may send 10 datagrams a second; \
         its generator hands frames to the driver of an interface of its own, whose receiving thread comes before the server on one \
         processor; the generator and the client have another. nftables limits in the netdev family's ingress hook. AF_XDP copies datagrams: once \
         into its memory, and over a veth in native mode once before. CPU per datagram is that of client and server, with what \
         the kernel does on their time. There is no runtime for native functions yet. Through the host, a request from a \
         sandbox passes one namespace: what is redirected meets no rule and no translation of its address.",
    ),
    (
        "chains",
        "A chain\u{2019}s functions pass on what they get, in place; hop by hop, a client calls the same functions by their URLs, one after \
         the other. What a request costs is counted by programs in the kernel, at tracepoints and at functions in user space. Copies \
         are counted with payloads of 5 KB: system calls that move as much are copies by the kernel; in user space those by the C \
         library are seen, those by instructions of the compiler\u{2019}s own are not; what moves as much with 1 KB is none. A pass through TCP is a \
         system call in which TCP sends or receives. On loopback a packet is received while it is sent, so interrupts and packets are \
         those of the whole host, the client\u{2019}s included, without timers. JSON and HTTP are calls of the functions that read and write \
         them. The boutique\u{2019}s users do not wait between tasks. Its services hop by hop are called by the client, without front end \
         and checkout, so that is the least it could take.",
    ),
    (
        "memory",
        "PSS is taken from `smaps_rollup`: shared pages count proportionally. Processor time is the kernel's own \
         count in ns.",
    ),
    (
        "console",
        "The console's pages over a database of seven days: 1,000 functions, 10 million invocations, 2 million log \
         lines with their search index, statistics of every quarter of an hour. One client sends one request after \
         the other. The pages are those of the function with a fifth of all invocations, unless named otherwise.",
    ),
];

/// The categories of what was timed, in their order.
pub fn categories(document: &Document) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for result in &document.results {
        if !found.contains(&result.category.as_str()) {
            found.push(&result.category);
        }
    }
    found
}

/// Name of a category's plot.
pub fn plot_file(document: &Document, category: &str) -> String {
    let mut name = document.benchmark_suite.clone();
    for word in category
        .split(" (means")
        .next()
        .unwrap_or_default()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        name.push('-');
        name.push_str(&word.to_ascii_lowercase());
    }
    name + ".svg"
}

/// The page of Markdown.
pub fn write(documents: &Documents) -> String {
    let mut page = String::from("# Benchmarks\n\n");
    if let Some(first) = documents.0.first() {
        let machine = &first.system_info;
        let _ = writeln!(
            page,
            "Written by `make bench` from the JSON files beside this page; change none of it by hand. {} processors ({}), {} \
             GiB of memory, {}, Linux {}. Hearth {}, {}.\n",
            machine.cpu_cores,
            machine.cpu_model,
            number((machine.memory_bytes as f64 / f64::from(1 << 30)).round()),
            machine.os,
            machine.kernel_version,
            first.version,
            first.timestamp.split('T').next().unwrap_or_default(),
        );
    }
    page.push_str(
        "Every percentile is *observed*: each request's own latency, by nearest rank. None is corrected for coordinated \
         omission, as wrk's are, so do not compare them with such. A dash stands for a percentile with too few samples, \
         where it would be the maximum. The first tenth of all samples is warm-up and not counted. Comparisons were \
         measured in the same run, interleaved.\n\n",
    );
    page.push_str(&goals::table(documents));
    for document in &documents.0 {
        suite(document, &mut page);
    }
    page
}

fn suite(document: &Document, page: &mut String) {
    let name = &document.benchmark_suite;
    let _ = writeln!(page, "\n## {name}\n");
    if let Some((_, text)) = INTRODUCTIONS.iter().find(|(suite, _)| suite == name) {
        let _ = writeln!(page, "{text}\n");
    }
    for skipped in &document.skipped {
        let _ = writeln!(page, "- Left out: {}: {}", skipped.name, skipped.reason);
    }
    if !document.skipped.is_empty() {
        page.push('\n');
    }
    for category in categories(document) {
        latencies(document, category, page);
    }
    audit::write(document, page);
    figures(document, page);
}

fn latencies(document: &Document, category: &str, page: &mut String) {
    let columns: Vec<_> = COLUMNS
        .into_iter()
        .filter(|(unit, _)| {
            let mut figures = document.figures.iter();
            figures.any(|figure| figure.category == category && figure.unit == *unit)
        })
        .collect();
    let head: String = columns
        .iter()
        .map(|(_, title)| format!(" {title} |"))
        .collect();
    let line = " ---: |".repeat(columns.len());
    let _ = writeln!(page, "### {}\n", capitalised(category));
    if category == flood::CATEGORY && curve::draw(document).is_some() {
        let _ = writeln!(
            page,
            "![Requests/s and p99 by the flood's rate]({})\n",
            curve::FILE
        );
    }
    if let Some(file) = lengths::file_of(category) {
        let _ = writeln!(page, "![Requests/s, p50 and p99 by length]({file})\n");
    }
    let _ = writeln!(
        page,
        "![{title}: median, p95, p99]({})\n\n\
         | observed latency | n | p50 | p95 | p99 | max |{head}\n| --- | ---: | ---: | ---: | ---: | ---: |{line}",
        plot_file(document, category),
        title = capitalised(category),
    );
    for row in document
        .results
        .iter()
        .filter(|row| row.category == category)
    {
        let m = &row.metrics;
        let _ = write!(
            page,
            "| {} | {} | {} | {} | {} | {} |",
            row.name,
            number(row.iterations as f64),
            time(m.median_ns),
            percentile(m.p95_ns),
            percentile(m.p99_ns),
            time(m.max_ns),
        );
        for (unit, _) in &columns {
            let value = document.value_in(category, &row.name, unit);
            let _ = write!(page, " {} |", value.map_or_else(String::new, number));
        }
        page.push('\n');
    }
    page.push('\n');
}

fn figures(document: &Document, page: &mut String) {
    let mut rows = document
        .figures
        .iter()
        .filter(|figure| !audit::is_audit(&figure.category))
        // What was not timed has no row in a table of latencies.
        .filter(|figure| {
            COLUMNS.iter().all(|(unit, _)| figure.unit != *unit)
                || document.timed(&figure.category, &figure.name).is_none()
        })
        .peekable();
    if rows.peek().is_none() {
        return;
    }
    page.push_str("### Other figures\n\n| of | what | value |\n| --- | --- | ---: |\n");
    for figure in rows {
        let value = format!("{} {}", number(figure.value), figure.unit);
        let _ = writeln!(
            page,
            "| {} | {} | {} |",
            figure.category,
            figure.name,
            value.trim_end()
        );
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}
