//! What was loaded and attached, as the program that did it tells it.

use hearth_ebpf::{Attachment, MapReport, Mode, ProgramReport};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Longest log of the verifier that is passed on, in bytes: its end, which says what is wrong.
const LOG_MAX: usize = 16 << 10;

/// The ingress of a node: what runs in the kernel, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IngressReport {
    /// Interfaces whose packets are counted and limited (`HEARTH_XDP_INTERFACE`).
    pub interfaces: Vec<IngressInterface>,
    /// The programs.
    pub programs: Vec<IngressProgram>,
    /// The maps.
    pub maps: Vec<IngressMap>,
    /// Why functions cannot have ports; null where they can.
    pub steering_missing: Option<String>,
    /// Why chains cannot have the transport `sk_msg`; null where they can.
    pub sk_msg_missing: Option<String>,
}

/// An interface to which the ingress is attached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IngressInterface {
    /// Its name.
    #[schema(example = "eth0")]
    pub name: String,
    /// `native` (in the driver) or `generic` (in the stack).
    #[schema(example = "native")]
    pub mode: String,
    /// Why it is not native; null where it is.
    pub not_native: Option<String>,
    /// Why what functions send is not counted; null where it is.
    pub not_counting_sent: Option<String>,
    /// Receive queues with an AF_XDP socket, which takes datagrams for functions past the kernel's stack.
    pub af_xdp_queues: u32,
    /// Why there is none; null where there are.
    pub not_af_xdp: Option<String>,
}

/// A program in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IngressProgram {
    /// Its name, as `bpftool prog` shows it.
    #[schema(example = "steer")]
    pub name: String,
    /// Its id; null if it is not loaded.
    pub id: Option<u32>,
    /// Instructions that the verifier processed; null where the kernel does not say.
    pub verified_instructions: Option<u32>,
    /// Why it is not loaded, in the verifier's words; null if it is.
    pub error: Option<String>,
}

/// A map in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IngressMap {
    /// Its name, as `bpftool map` shows it.
    #[schema(example = "ports")]
    pub name: String,
    /// Its id.
    pub id: u32,
    /// Entries that it has room for.
    pub capacity: u32,
    /// Entries in use; null where that says nothing, or before the server runs.
    pub used: Option<u32>,
}

impl From<&Attachment> for IngressInterface {
    fn from(attachment: &Attachment) -> Self {
        Self {
            name: attachment.interface.name.clone(),
            mode: match attachment.mode {
                Mode::Native => "native",
                Mode::Generic => "generic",
            }
            .to_owned(),
            not_native: attachment.not_native.clone(),
            not_counting_sent: attachment.not_counting_sent.clone(),
            af_xdp_queues: 0,
            not_af_xdp: None,
        }
    }
}

impl From<&ProgramReport> for IngressProgram {
    fn from(report: &ProgramReport) -> Self {
        let loaded = report.loaded.as_ref().ok();
        Self {
            name: report.name.to_owned(),
            id: loaded.map(|loaded| loaded.id),
            verified_instructions: loaded.and_then(|loaded| loaded.verified_instructions),
            error: report.loaded.as_ref().err().map(|log| {
                let from = log.ceil_char_boundary(log.len().saturating_sub(LOG_MAX));
                log[from..].to_owned()
            }),
        }
    }
}

impl From<&MapReport> for IngressMap {
    fn from(report: &MapReport) -> Self {
        Self {
            name: report.name.to_owned(),
            id: report.id,
            capacity: report.capacity,
            used: report.used,
        }
    }
}
