//! What is to be known of each suite before its figures are read.

/// By the suites' names.
pub const INTRODUCTIONS: [(&str, &str); 13] = [
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
    (
        "lab",
        "The lab as its users run it. *Load generator*: in turns with wrk, both on the first processor, against a server of one thread on \
         the last. With one connection the load is the same, one request at a time, and what differs is what the generators add; with 16 \
         the loop is as fast as its slower side. wrk corrects its percentiles for requests that it did not send while it waited, and tells \
         them in whole microseconds: those of the lab have the same correction here, and only here, each at its own pace. wrk\u{2019}s \
         processor time is that of its whole process, the lab\u{2019}s that of the run. Figures are medians of turns of 200 ms, 120 with one \
         connection and 300 with 16, so that few of them have another program of the host in \
         between. *Open loop*: the worst rate error of six runs, and how much later than planned requests were sent, the runs\u{2019} medians. \
         *Duets*: each is one experiment with 100 events, for which a Python function computes between 1 and 2 ms: \
         15 calls of 3 repeats are 45 trials of each, and a repeat is the mean of 10 invocations. A change is found if its interval at 99 % \
         excludes 0 and it passes the signed-rank test with Holm\u{2019}s correction over the 100; otherwise it is possible. *Tail table*: 600 samples of \
         factors with a goal (30 bursts of 100), 100 of the others (5 bursts); TMR is p99 / median, MR and TR are median and p99 over the warm median, \
         and the paper\u{2019}s ratio is AWS\u{2019}s, of 3,000 samples. *Go suite*: 10 benchmarks in 15 calls of 3 repeats, a tree and itself; benchmark \
         time is that of the iterations that `go test` gives a result for.",
    ),
];
