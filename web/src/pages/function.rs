//! `/functions/{name}`: state, test panel, history.

use askama::Template;

use crate::chrome::{Badge, Chrome};
use crate::format;
use crate::json::JsonText;
use crate::pages::{
    ErrorView, EventPicker, HistoryView, HttpForm, LogRow, RecentStats, shell_quoted,
};
use crate::stage_bar::StageBar;

/// The pages of one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    /// Event, result, last calls.
    Test,
    /// The files and their editor.
    Code,
    /// Histogram, percentiles, heat map.
    Latency,
    /// The call and its outcome.
    Invocations,
    /// What it printed.
    Logs,
    /// What it reached, and what was refused.
    Network,
    /// Every version there was.
    Versions,
    /// Limits, environment, access, deletion.
    Settings,
}

impl Tab {
    /// All of them in the order of the bar.
    pub const ALL: [Self; 8] = [
        Self::Test,
        Self::Code,
        Self::Latency,
        Self::Invocations,
        Self::Logs,
        Self::Network,
        Self::Versions,
        Self::Settings,
    ];

    /// What the bar says.
    pub fn label(self) -> &'static str {
        match self {
            Self::Test => "Test",
            Self::Code => "Code",
            Self::Latency => "Latency",
            Self::Invocations => "Invocations",
            Self::Logs => "Logs",
            Self::Network => "Network",
            Self::Versions => "Versions",
            Self::Settings => "Settings",
        }
    }

    /// The id of its link, `tab-…`.
    pub fn id(self) -> &'static str {
        match self {
            Self::Test => "tab-test",
            Self::Code => "tab-code",
            Self::Latency => "tab-latency",
            Self::Invocations => "tab-invocations",
            Self::Logs => "tab-logs",
            Self::Network => "tab-network",
            Self::Versions => "tab-versions",
            Self::Settings => "tab-settings",
        }
    }

    /// What follows `/functions/{name}` in its URL.
    pub fn path(self) -> &'static str {
        match self {
            Self::Test => "",
            Self::Code => "/code",
            Self::Latency => "/latency",
            Self::Invocations => "/invocations",
            Self::Logs => "/logs",
            Self::Network => "/network",
            Self::Versions => "/versions",
            Self::Settings => "/settings",
        }
    }
}

/// What the head of each of a function's pages says, refreshed while the page is open.
#[derive(Debug, Clone)]
pub struct FunctionHead {
    /// Its name.
    pub name: String,
    /// `Python`, `Node.js`.
    pub runtime: &'static str,
    /// The active version.
    pub version: u32,
    /// The revision that forms send along, so that they cannot overwrite other changes.
    pub revision: String,
    /// Whether it can answer.
    pub state: Badge,
    /// Why it cannot.
    pub state_reason: Option<String>,
    /// What the active version's author should know of it.
    pub notes: Vec<String>,
    /// Instances that wait for a request.
    pub idle: u32,
    /// Instances that serve one.
    pub busy: u32,
    /// Instances being started.
    pub starting: u32,
    /// Requests waiting for an instance.
    pub queued: u32,
    /// The last five minutes.
    pub recent: RecentStats,
}

impl FunctionHead {
    /// `2 requests`.
    pub(super) fn waiting(&self) -> String {
        format::plural(self.queued.into(), "request")
    }
}

/// `partials/function_head.html`: what is refreshed.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/function_head.html")]
pub struct FunctionHeadPartial {
    /// The head.
    pub head: FunctionHead,
}

/// `function.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "function.html")]
pub struct FunctionPage {
    /// The frame.
    pub chrome: Chrome,
    /// The head.
    pub head: FunctionHead,
    /// Absolute URL of the HTTP trigger.
    pub url: String,
    /// Whether the URL answers without a token.
    pub public: bool,
    /// A shell command that invokes the function, up to the event.
    pub curl: String,
    /// The event to start with.
    pub event: String,
    /// Whether the address asks for this event, so that none that was typed earlier takes its place.
    pub explicit_event: bool,
    /// Events to choose from.
    pub picker: EventPicker,
    /// A call of the URL to start with.
    pub http: HttpForm,
    /// Whether to call the URL instead of invoking the function with an event.
    pub by_http: bool,
    /// Outcome of the last invocation, if the page responds to a form (without scripts).
    pub outcome: Option<InvokeOutcome>,
    /// Its last calls.
    pub history: HistoryView,
    /// What the scheduler decided for it.
    pub decisions: Vec<DecisionRow>,
    /// How its instances start.
    pub starts: StartRow,
    /// Its template's image on disk.
    pub image: ImageRow,
}

impl FunctionPage {
    const TAB: Tab = Tab::Test;

    /// The command for the event in the editor.
    fn curl_line(&self) -> String {
        format!("{}{}", self.curl, shell_quoted(&self.event))
    }

    /// `12 times`: the sum of all counts.
    fn decided_in_words(&self) -> String {
        let sum = self.decisions.iter().map(|decision| decision.count).sum();
        format::count(sum)
    }
}

/// How instances of a version start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartRow {
    /// `fork`, `restore` or `boot`.
    pub by: String,
    /// Why, where there is something to say.
    pub reason: Option<String>,
}

/// The image of a function's template, from which it is restored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageRow {
    /// Its size on disk; none when there is no image.
    pub bytes: Option<u64>,
    /// Templates that were restored.
    pub restores: u64,
    /// Restores that failed.
    pub failures: u64,
    /// What went wrong last.
    pub note: Option<String>,
}

impl ImageRow {
    /// `Template image: 4.2 MiB, restored 3 times; 1 restore failed.`
    pub(super) fn in_words(&self) -> String {
        let mut text = match self.bytes {
            Some(bytes) => format!("Template image: {}", format::bytes(bytes)),
            None => "No template image".into(),
        };
        if self.restores > 0 {
            text += &format!(", restored {}", format::plural(self.restores, "time"));
        }
        if self.failures > 0 {
            text += &format!("; {} failed", format::plural(self.failures, "restore"));
        }
        text + "."
    }
}

/// How often the scheduler decided one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecisionRow {
    /// The API's name for it.
    pub name: &'static str,
    /// How often.
    pub count: u64,
    /// What it is, in one line.
    pub meaning: &'static str,
}

impl DecisionRow {
    /// Grouped count.
    fn shown(&self) -> String {
        format::count(self.count)
    }
}

/// What an invocation from the test panel gave.
#[derive(Debug, Clone)]
pub struct InvokeOutcome {
    /// HTTP status the API would have answered with.
    pub http_status: u16,
    /// `succeeded`, or the API's error code (`function_error`, `function_timeout` …).
    pub badge: Badge,
    /// The handler's result.
    pub result: Option<JsonText>,
    /// An image that it answered a call of its URL with, as a data URL.
    pub image: Option<String>,
    /// What went wrong in words; empty on success.
    pub message: String,
    /// What the handler raised.
    pub error: Option<ErrorView>,
    /// Id of the invocation; none when it was never admitted.
    pub invocation: Option<String>,
    /// Name of the function.
    pub function: String,
    /// Response headers: name and value.
    pub headers: Vec<(String, String)>,
    /// The start kind: `warm`, `fork` …
    pub start_kind: Option<&'static str>,
    /// What the start cost, in words: `started by fork in 0.9 ms`. Empty when there was none.
    pub started: String,
    /// Where the time went.
    pub stages: Option<StageBar>,
    /// What it printed.
    pub logs: Vec<LogRow>,
}

/// `partials/invoke_outcome.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/invoke_outcome.html")]
pub struct InvokeOutcomePartial {
    /// What came out.
    pub outcome: InvokeOutcome,
}
