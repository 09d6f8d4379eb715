//! `/ingress`: packets for functions and chains at the node's interfaces, who sends them, the deny and allow lists, and what runs in
//! the kernel. Each part refreshes on its own, so that one that is in use stays as it is.

use askama::Template;

use super::{FieldErrors, Moment};
use crate::chrome::Chrome;
use crate::format;

/// How long an entry may be listed: seconds (none for ever), and in words.
pub const LIST_EXPIRIES: [(&str, &str); 7] = [
    ("600", "In 10 minutes"),
    ("3600", "In an hour"),
    ("21600", "In 6 hours"),
    ("86400", "In a day"),
    ("604800", "In a week"),
    ("2592000", "In 30 days"),
    ("", "Never"),
];
/// The one that is chosen at first.
pub const LIST_EXPIRY: &str = "86400";

/// Width of a bar, in its own units.
const BAR: u64 = 1000;

/// Packets by what became of them.
#[derive(Debug, Clone, Default)]
pub struct IngressTraffic {
    /// Name and value of the figures that matter most.
    pub figures: Vec<(&'static str, String)>,
    /// Dropped packets by reason.
    pub dropped: Vec<(&'static str, String)>,
    /// Packets that passed, by what they are.
    pub passed: Vec<(&'static str, String)>,
}

/// A source and what it sent.
#[derive(Debug, Clone, Default)]
pub struct SourceRow {
    /// Its address, or its network of 64 bits.
    pub source: String,
    /// The function or chain to which it sent.
    pub owner: String,
    /// Whether that is a chain.
    pub is_chain: bool,
    /// Connections and datagrams a second.
    pub per_second: String,
    /// Those that were let through.
    pub admitted: String,
    /// Those that were dropped by the limit of each source.
    pub refused: String,
    /// Whether some were in the last seconds.
    pub limited: bool,
}

impl SourceRow {
    /// The page of the function or chain.
    pub(super) fn page(&self) -> String {
        match self.is_chain {
            true => format!("/chains/{}", self.owner),
            false => format!("/functions/{}/network", self.owner),
        }
    }
}

/// Who sends.
#[derive(Debug, Clone, Default)]
pub struct IngressSources {
    /// Who is over a limit now.
    pub limited: Vec<SourceRow>,
    /// Who sends most.
    pub top: Vec<SourceRow>,
}

/// A network on a list.
#[derive(Debug, Clone)]
pub struct ListedRow {
    /// In CIDR notation.
    pub prefix: String,
    /// Whether it is on the deny list; on the allow list otherwise.
    pub denied: bool,
    /// When that ends.
    pub expires: Option<Moment>,
    /// Why.
    pub note: String,
    /// Since when.
    pub created: Moment,
}

/// The lists.
#[derive(Debug, Clone, Default)]
pub struct IngressLists {
    /// The session's CSRF token, for the forms in the rows.
    pub csrf: String,
    /// By prefix.
    pub rows: Vec<ListedRow>,
}

/// An interface to which the programs are attached.
#[derive(Debug, Clone)]
pub struct InterfaceRow {
    /// Its name.
    pub name: String,
    /// `native` or `generic`.
    pub mode: String,
    /// Receive queues with an AF_XDP socket.
    pub queues: u32,
    /// What it lacks, and why.
    pub lacks: Vec<(&'static str, String)>,
}

impl InterfaceRow {
    pub(super) fn is_native(&self) -> bool {
        self.mode == "native"
    }
}

/// A program.
#[derive(Debug, Clone)]
pub struct ProgramRow {
    /// Its name.
    pub name: String,
    /// What it does.
    pub what: &'static str,
    /// Its id; none if it is not loaded.
    pub id: Option<u32>,
    /// Instructions that the verifier processed.
    pub instructions: Option<u32>,
    /// Why it is not loaded: the end of the verifier's log.
    pub error: String,
}

impl ProgramRow {
    pub(super) fn verified(&self) -> String {
        let count = |count: u32| format::count(count.into());
        self.instructions.map_or_else(|| "–".to_owned(), count)
    }
}

/// A map.
#[derive(Debug, Clone)]
pub struct MapRow {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub what: &'static str,
    /// Its id.
    pub id: u32,
    /// Entries that it has room for.
    pub capacity: u32,
    /// Entries in use; none where that says nothing.
    pub used: Option<u32>,
}

impl MapRow {
    pub(super) fn room(&self) -> String {
        format::count(self.capacity.into())
    }
    pub(super) fn in_use(&self) -> String {
        format::count(self.used.unwrap_or_default().into())
    }
    /// The used share, as a part of [`BAR`]. A single entry is seen.
    pub(super) fn filled(&self) -> u64 {
        let used = u64::from(self.used.unwrap_or_default());
        let share = used * BAR / u64::from(self.capacity.max(1));
        share.clamp(u64::from(used > 0) * 4, BAR)
    }
}

/// What runs in the kernel.
#[derive(Debug, Clone, Default)]
pub struct IngressKernel {
    /// The interfaces.
    pub interfaces: Vec<InterfaceRow>,
    /// The programs.
    pub programs: Vec<ProgramRow>,
    /// The maps.
    pub maps: Vec<MapRow>,
    /// Why connections are not steered; empty when they are.
    pub steering_missing: String,
}

/// The form for an entry, as typed.
#[derive(Debug, Clone, Default)]
pub struct ListForm {
    /// An address or a network.
    pub prefix: String,
    /// `deny` or `allow`.
    pub verdict: String,
    /// Seconds; empty for ever.
    pub expires: String,
    /// Why.
    pub note: String,
}

/// `partials/ingress_traffic.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/ingress_traffic.html")]
pub struct IngressTrafficPartial {
    /// Packets.
    pub traffic: IngressTraffic,
}

/// `partials/ingress_sources.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/ingress_sources.html")]
pub struct IngressSourcesPartial {
    /// Who sends.
    pub sources: IngressSources,
}

/// `partials/ingress_lists.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/ingress_lists.html")]
pub struct IngressListsPartial {
    /// The lists.
    pub lists: IngressLists,
}

/// `partials/ingress_kernel.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/ingress_kernel.html")]
pub struct IngressKernelPartial {
    /// What runs in the kernel.
    pub kernel: IngressKernel,
}

/// `ingress.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "ingress.html")]
pub struct IngressPage {
    /// The frame.
    pub chrome: Chrome,
    /// Packets; none without an interface.
    pub traffic: Option<IngressTraffic>,
    /// Who sends.
    pub sources: IngressSources,
    /// The lists.
    pub lists: IngressLists,
    /// What runs in the kernel.
    pub kernel: IngressKernel,
    /// The form for another entry.
    pub form: ListForm,
    /// Whether the form is open.
    pub adding: bool,
    /// What is wrong with its fields: `prefix`, `verdict`, `expires_at`, `note`.
    pub errors: FieldErrors,
}
