//! The view models, one module a page: plain data, filled by the server, rendered by the template named beside it.

mod account;
mod accounts;
mod audit;
mod chain_rows;
mod chains;
mod code;
mod confirm;
mod diff;
mod error;
mod explanation;
mod fields;
mod function;
mod functions;
mod ingress;
mod invocation;
mod invocations;
mod lab;
mod lab_duet;
mod lab_form;
mod lab_load;
mod lab_replay;
mod lab_suite;
mod latency;
mod login;
mod logs;
mod network;
mod new;
mod overview;
mod performance;
mod ports;
mod retention;
mod secrets;
mod settings;
mod setup;
mod shared;
mod test;
mod tokens;
mod versions;
mod what_if;

pub use account::{AccountPage, SessionRow};
pub use accounts::{AccountsPage, MadePassword, NewPerson, PersonPage, PersonRow, RoleChoice};
pub use audit::{AuditPage, AuditRow};
pub use chain_rows::{ChainInstanceRow, ChainRefusalRow};
pub use chains::{
    ChainForm, ChainLive, ChainMemberRow, ChainPage, ChainRequestPage, ChainRequestRow,
    ChainRequests, ChainRow, ChainSettingsPage, ChainVersionRow, ChainsPage, WorkloadCard,
};
pub use code::{
    CODE_FIELDS, CodePage, CodeReviewPage, CodeReviewPartial, FileEntry, FileKind, FileList,
    OpenFile,
};
pub use confirm::ConfirmPage;
pub use diff::{DiffLine, DiffView, FileChange, FileDiff, Hunk, SettingRow, Side};
pub use error::ErrorPage;
pub use explanation::{CauseRow, ExplanationView, LatencyCellPage, RanRow};
pub use function::{
    DecisionRow, FunctionHead, FunctionHeadPartial, FunctionPage, ImageRow, InvokeOutcome,
    InvokeOutcomePartial, StartRow, Tab,
};
pub use functions::{
    FunctionRow, FunctionsPage, FunctionsTable, ListQuery, ListView, SORTS, STATE_FILTERS, badge,
};
pub use ingress::{
    IngressKernel, IngressKernelPartial, IngressLists, IngressListsPartial, IngressPage,
    IngressSources, IngressSourcesPartial, IngressTraffic, IngressTrafficPartial, InterfaceRow,
    LIST_EXPIRIES, LIST_EXPIRY, ListForm, ListedRow, MapRow, ProgramRow, SourceRow,
};
pub use invocation::{InvocationDetails, InvocationPage, PayloadView};
pub use invocations::{
    FilterText, HistoryPartial, HistoryRow, HistoryView, InvocationsPage, InvocationsPartial,
    InvocationsView, START_FILTERS, STATUS_FILTERS, TRIGGER_FILTERS,
};
pub use lab::{
    ComparedPlot, ComparedRun, ExperimentCard, ExperimentCards, ExperimentComparePage,
    ExperimentFileRow, ExperimentLive, ExperimentLivePartial, ExperimentPage, ExperimentsPartial,
    LabPage, LiveDistribution, PlotView, ResultTable,
};
pub use lab_duet::DuetForm;
pub use lab_form::LabForm;
pub use lab_load::LoadForm;
pub use lab_replay::ReplayForm;
pub use lab_suite::SuiteForm;
pub use latency::{LatencyPage, PERCENTILES, STAGES, WINDOWS};
pub use login::LoginPage;
pub use logs::{LogLineRow, LogsPage, LogsPartial, LogsView};
pub use network::{DestinationRow, NetworkPage, ReachedRow};
pub use new::{FunctionForm, NewPage};
pub use overview::{
    CapabilityRow, FailureRow, FailuresPartial, OverviewPage, SlowRow, SlowestPartial,
};
pub use performance::{ComparisonRow, PERIODS, PerformancePage, VersionFigures};
pub(crate) use ports::PORT_LIMIT_FIELDS;
pub use ports::{BrokerRow, OwnPorts, OwnPortsPartial, PortLimitsForm, PortRow};
pub use retention::{
    AmountView, PassView, RetentionForm, RetentionPage, RetentionPreview, RetentionPreviewPartial,
    RetentionState, RetentionStatePartial,
};
pub use secrets::{SecretRow, SecretsPage};
pub use settings::{CorsForm, DeleteState, GateForm, NetworkForm, SettingsForm, SettingsPage};
pub use setup::SetupPage;
pub use shared::{
    CodePlace, Command, DeployProblem, EnvRow, ErrorView, FieldErrors, FormOutcome, LogRow, Moment,
    Percentile, RecentStats,
};
pub use test::{EventPicker, HttpForm, METHODS, SavedEventRow, shell_quoted};
pub use tokens::{EXPIRIES, MadeToken, NewTokenForm, RIGHTS, TokenRow, TokensPage};
pub use versions::{GateRow, VersionActivatePage, VersionDiffPage, VersionRow, VersionsPage};
pub use what_if::WhatIfPage;

#[cfg(test)]
mod tests;
