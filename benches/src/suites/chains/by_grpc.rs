//! The baseline over gRPC: a process for each function, which a front end calls one after the other.

use std::net::SocketAddr;
use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::load::Observed;
use crate::peers::grpc::{Client, Message};
use crate::peers::{Peer, parse};
use crate::process::Program;
use crate::processes::family_cpu_time;
use crate::results::Samples;

/// The functions.
pub(super) struct ByGrpc {
    functions: Vec<(Program, SocketAddr)>,
    message: Message,
}

impl ByGrpc {
    /// Starts so many. Their messages have so many bytes.
    pub(super) fn start(length: usize, bytes: usize) -> anyhow::Result<Self> {
        let start = || {
            let (program, address) = Peer::Grpc.start()?;
            anyhow::Ok((program, parse(&address)?))
        };
        Ok(Self {
            functions: (0..length).map(|_| start()).collect::<Result<_, _>>()?,
            message: Message {
                filler: "x".repeat(bytes),
            },
        })
    }

    /// What their processes have taken.
    pub(super) fn cpu_time(&self) -> anyhow::Result<Duration> {
        let pids = self.functions.iter().map(|(program, _)| program.pid());
        pids.map(family_cpu_time).sum()
    }

    /// A closed loop of so many requests at a time, each over connections of its own, as those over HTTP are.
    pub(super) fn drive(&self, connections: usize, time: Duration) -> anyhow::Result<Observed> {
        let threads = thread::available_parallelism().map_or(1, NonZero::get) / 2;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads.clamp(1, connections.max(1)))
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let mut clients = Vec::new();
            for _ in 0..connections {
                let mut each = Vec::new();
                for (_, address) in &self.functions {
                    let mut client = Client::connect(*address).await?;
                    client.echo(self.message.clone()).await?;
                    each.push(client);
                }
                clients.push(each);
            }
            let begun = Instant::now();
            let until = begun + time;
            let running: Vec<_> = clients
                .into_iter()
                .map(|client| tokio::spawn(requests(client, self.message.clone(), until)))
                .collect();
            let mut samples = Samples::default();
            for one in running {
                samples.extend(&one.await.context("a client panicked")??);
            }
            Ok(Observed {
                samples,
                took: begun.elapsed(),
            })
        })
    }
}

/// One request after the other until then, one at least.
async fn requests(
    mut functions: Vec<Client>,
    message: Message,
    until: Instant,
) -> anyhow::Result<Samples> {
    let mut samples = Samples::default();
    loop {
        let begun = Instant::now();
        let mut passed = message.clone();
        for function in &mut functions {
            passed = function.echo(passed).await?;
        }
        let ended = Instant::now();
        samples.push(ended - begun);
        if ended >= until {
            return Ok(samples);
        }
    }
}
