//! The metrics of one scrape and their names.

use std::fmt::Error;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::histogram;
use super::ingress::{self, IngressTraffic};
use super::network;
use super::process::Process;
use crate::engine::NetworkTraffic;
use crate::history::Totals;
use crate::http::answer::start_kind;
use crate::model::{FunctionState, FunctionView, ImageView, StartKind, Status};
use crate::scheduler::MemoryStatus;

/// The order of [`Totals::by_start`].
const KINDS: [StartKind; 4] = [
    StartKind::Warm,
    StartKind::Fork,
    StartKind::Restore,
    StartKind::Boot,
];

/// Everything one scrape shows.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub functions: Vec<FunctionView>,
    pub totals: Vec<Totals>,
    /// Of chains.
    pub chains: Vec<Totals>,
    pub memory_status: MemoryStatus,
    /// Pre-warmed sandboxes that are ready.
    pub prewarmed_sandboxes: usize,
    /// How many of them restores have taken.
    pub prewarmed_sandboxes_used: u64,
    /// Answers whose worker's stamps contradicted the server's clock.
    pub refused_stamps: u64,
    /// Traffic of functions that had any.
    pub network: Vec<NetworkTraffic>,
    /// What came to functions' ports.
    pub ingress: IngressTraffic,
    pub process: Process,
    pub uptime: Duration,
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        self.functions(&mut encoder)?;
        self.images(&mut encoder)?;
        self.invocations(&mut encoder)?;
        histogram::encode(&self.totals, &mut encoder)?;
        network::encode(&self.network, &mut encoder)?;
        ingress::encode(&self.ingress, &mut encoder)?;
        self.process.encode(&mut encoder)?;
        encoder
            .encode_descriptor(
                "hearth_uptime_seconds",
                "Time since the server started",
                None,
                MetricType::Gauge,
            )?
            .encode_gauge(&self.uptime.as_secs_f64())
    }
}

impl Snapshot {
    fn functions(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut functions = encoder.encode_descriptor(
            "hearth_functions",
            "Functions by state",
            None,
            MetricType::Gauge,
        )?;
        for state in [
            FunctionState::Ready,
            FunctionState::Starting,
            FunctionState::Failed,
            FunctionState::Asleep,
        ] {
            let count = self.functions.iter().filter(|f| f.state == state).count() as u64;
            functions
                .encode_family(&[("state", state_name(state))])?
                .encode_gauge(&count)?;
        }
        let mut instances = encoder.encode_descriptor(
            "hearth_instances",
            "Live instances by function and state",
            None,
            MetricType::Gauge,
        )?;
        for function in &self.functions {
            let counts = function.instances;
            for (state, count) in [
                ("idle", counts.idle),
                ("busy", counts.busy),
                ("starting", counts.starting),
            ] {
                let labels = [("function", function.name.as_str()), ("state", state)];
                instances.encode_family(&labels)?.encode_gauge(&count)?;
            }
        }
        let mut queued = encoder.encode_descriptor(
            "hearth_queued_requests",
            "Requests waiting for an instance",
            None,
            MetricType::Gauge,
        )?;
        for function in &self.functions {
            queued
                .encode_family(&[("function", function.name.as_str())])?
                .encode_gauge(&function.queued)?;
        }
        let mut decisions = encoder.encode_descriptor(
            "hearth_scheduler_decisions",
            "Scheduler decisions, by function",
            None,
            MetricType::Counter,
        )?;
        for function in &self.functions {
            for (decision, count, _) in function.decisions.entries() {
                let labels = [("function", function.name.as_str()), ("decision", decision)];
                decisions
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, _, f64>(&count, None)?;
            }
        }
        for (name, help, bytes) in [
            (
                "hearth_kept_memory_bytes",
                "Memory of templates, instances and images",
                self.memory_status.used,
            ),
            (
                "hearth_memory_budget_bytes",
                "Budget for the memory of templates, instances and images",
                self.memory_status.budget,
            ),
        ] {
            encoder
                .encode_descriptor(name, help, None, MetricType::Gauge)?
                .encode_gauge(&bytes)?;
        }
        Ok(())
    }

    fn images(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut bytes = encoder.encode_descriptor(
            "hearth_image_bytes",
            "Size of the image of a function's template",
            None,
            MetricType::Gauge,
        )?;
        for function in &self.functions {
            bytes
                .encode_family(&[("function", function.name.as_str())])?
                .encode_gauge(&function.image.bytes.unwrap_or(0))?;
        }
        type Read = fn(&ImageView) -> u64;
        let counters: [(&str, &str, Read); 4] = [
            (
                "hearth_restores",
                "Templates restored from an image",
                |image| image.restores,
            ),
            (
                "hearth_restore_failures",
                "Restores that failed or timed out",
                |image| image.restore_failures,
            ),
            ("hearth_dumps", "Images created", |image| image.dumps),
            (
                "hearth_dump_failures",
                "Images that could not be created",
                |image| image.dump_failures,
            ),
        ];
        for (name, help, read) in counters {
            let mut counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for function in &self.functions {
                counter
                    .encode_family(&[("function", function.name.as_str())])?
                    .encode_counter::<NoLabelSet, _, u64>(&read(&function.image), None)?;
            }
        }
        encoder
            .encode_descriptor(
                "hearth_prewarmed_sandboxes",
                "Pre-warmed sandboxes ready for a restore",
                None,
                MetricType::Gauge,
            )?
            .encode_gauge(&(self.prewarmed_sandboxes as u64))?;
        encoder
            .encode_descriptor(
                "hearth_prewarmed_sandboxes_used",
                "Pre-warmed sandboxes used by restores",
                None,
                MetricType::Counter,
            )?
            .encode_counter::<NoLabelSet, _, u64>(&self.prewarmed_sandboxes_used, None)?;
        Ok(())
    }

    fn invocations(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut invocations = encoder.encode_descriptor(
            "hearth_invocations",
            "Finished invocations by function and status",
            None,
            MetricType::Counter,
        )?;
        for total in &self.totals {
            for (status, count) in &total.by_status {
                let labels = [
                    ("function", total.function.as_str()),
                    ("status", status_name(*status)),
                ];
                invocations
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, _, f64>(count, None)?;
            }
        }
        let mut requests = encoder.encode_descriptor(
            "hearth_chain_requests",
            "Finished requests to chains by chain and status",
            None,
            MetricType::Counter,
        )?;
        for total in &self.chains {
            for (status, count) in &total.by_status {
                let labels = [
                    ("chain", total.function.as_str()),
                    ("status", status_name(*status)),
                ];
                requests
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, _, f64>(count, None)?;
            }
        }
        let mut starts = encoder.encode_descriptor(
            "hearth_starts",
            "Finished invocations by function and start kind",
            None,
            MetricType::Counter,
        )?;
        for total in &self.totals {
            for (start, count) in KINDS.iter().zip(&total.by_start) {
                let labels = [
                    ("function", total.function.as_str()),
                    ("start", start_kind(*start)),
                ];
                starts
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, _, f64>(count, None)?;
            }
        }
        encoder
            .encode_descriptor(
                "hearth_refused_stamps",
                "Answers timed by the server's clock alone because the instance's timestamps contradicted it",
                None,
                MetricType::Counter,
            )?
            .encode_counter::<NoLabelSet, _, u64>(&self.refused_stamps, None)?;
        Ok(())
    }
}

fn state_name(state: FunctionState) -> &'static str {
    match state {
        FunctionState::Ready => "ready",
        FunctionState::Starting => "starting",
        FunctionState::Failed => "failed",
        FunctionState::Asleep => "asleep",
    }
}

fn status_name(status: Status) -> &'static str {
    match status {
        Status::Queued => "queued",
        Status::Running => "running",
        Status::Succeeded => "succeeded",
        Status::Failed => "failed",
        Status::TimedOut => "timed_out",
        Status::Crashed => "crashed",
        Status::OutOfMemory => "out_of_memory",
        Status::Cancelled => "cancelled",
        Status::Dead => "dead",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::LiveHistogram;
    use crate::ingress::{Dropped, NodeTraffic, PortTraffic};
    use crate::model::PortOwner;
    use crate::network::{Labelled, NetworkTotals};

    fn packets(packets: u64) -> PortTraffic {
        PortTraffic {
            packets,
            ..PortTraffic::default()
        }
    }

    #[test]
    fn the_text_is_open_metrics() {
        let snapshot = Snapshot {
            ingress: IngressTraffic {
                owners: vec![
                    (
                        PortOwner::function("hello"),
                        packets(5),
                        Dropped::default(),
                        packets(4),
                    ),
                    (
                        PortOwner::chain("hello"),
                        packets(7),
                        Dropped::default(),
                        packets(6),
                    ),
                ],
                node: Some(NodeTraffic::default()),
            },
            network: vec![NetworkTraffic {
                function: "hello".into(),
                totals: NetworkTotals {
                    bytes_out: 7,
                    names_refused: 3,
                    ..NetworkTotals::default()
                },
                by_destination: vec![(
                    "api.example.com:443".into(),
                    Labelled {
                        bytes_in: 9,
                        refused: 4,
                        ..Labelled::default()
                    },
                )],
            }],
            functions: Vec::new(),
            chains: vec![Totals {
                function: "shop".into(),
                by_status: vec![(Status::Succeeded, 3)],
                by_start: [3, 0, 0, 0],
                total_us: 30,
                histogram: LiveHistogram::default(),
            }],
            totals: vec![Totals {
                function: "hello".into(),
                by_status: vec![(Status::Succeeded, 3), (Status::TimedOut, 1)],
                by_start: [2, 2, 0, 0],
                total_us: 2_500_000,
                histogram: LiveHistogram {
                    count: 4,
                    errors: 1,
                    buckets: vec![(90, 1), (100, 1), (101, 1), (2_000_000_000, 1)],
                },
            }],
            memory_status: MemoryStatus { used: 5, budget: 9 },
            prewarmed_sandboxes: 1,
            prewarmed_sandboxes_used: 2,
            refused_stamps: 1,
            process: Process::default(),
            uptime: Duration::from_secs(7),
        };
        let text = super::super::render(snapshot).unwrap();
        for line in [
            "hearth_functions{state=\"ready\"} 0",
            "hearth_invocations_total{function=\"hello\",status=\"timed_out\"} 1",
            "hearth_chain_requests_total{chain=\"shop\",status=\"succeeded\"} 3",
            "hearth_starts_total{function=\"hello\",start=\"fork\"} 2",
            "hearth_invocation_duration_seconds_sum{function=\"hello\"} 2.5",
            "hearth_invocation_duration_seconds_count{function=\"hello\"} 4",
            "hearth_invocation_duration_seconds_bucket{le=\"0.0001\",function=\"hello\"} 2",
            "hearth_invocation_duration_seconds_bucket{le=\"0.00025\",function=\"hello\"} 3",
            "hearth_invocation_duration_seconds_bucket{le=\"+Inf\",function=\"hello\"} 4",
            "hearth_kept_memory_bytes 5",
            "hearth_memory_budget_bytes 9",
            "hearth_network_bytes_total{function=\"hello\",direction=\"out\"} 7",
            "hearth_network_refused_names_total{function=\"hello\"} 3",
            "hearth_network_destination_bytes_total{function=\"hello\",destination=\"api.example.com:443\",direction=\"in\"} 9",
            "hearth_network_destination_refused_total{function=\"hello\",destination=\"api.example.com:443\"} 4",
            "process_open_fds 0",
            "hearth_uptime_seconds 7.0",
            "hearth_ingress_packets_total{function=\"hello\",direction=\"in\"} 5",
            "hearth_ingress_packets_total{chain=\"hello\",direction=\"out\"} 6",
            "hearth_ingress_dropped_packets_total{chain=\"hello\",reason=\"denied\"} 0",
        ] {
            assert!(
                text.lines().any(|l| l == line),
                "{line} is missing in\n{text}"
            );
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
