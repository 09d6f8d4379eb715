//! The view models, one module a page: plain data, filled by the server, rendered by the template named beside it.

mod code;
mod error;
mod function;
mod functions;
mod invocation;
mod invocations;
mod login;
mod logs;
mod new;
mod overview;
mod retention;
mod settings;
mod shared;

pub use code::{CodePage, CodeUpload, VersionRow};
pub use error::ErrorPage;
pub use function::{
    DecisionRow, FunctionHead, FunctionHeadPartial, FunctionPage, ImageRow, InvokeOutcome,
    InvokeOutcomePartial, Tab,
};
pub use functions::{FunctionRow, FunctionsPage, FunctionsTable};
pub use invocation::{InvocationDetails, InvocationPage, PayloadView};
pub use invocations::{
    FilterText, HistoryPartial, HistoryRow, HistoryView, InvocationsPage, InvocationsPartial,
    InvocationsView, START_FILTERS, STATUS_FILTERS, TRIGGER_FILTERS,
};
pub use login::LoginPage;
pub use logs::{LogLineRow, LogsPage, LogsPartial, LogsView};
pub use new::{FunctionForm, NewPage};
pub use overview::{OverviewPage, StateCount};
pub use retention::{
    AmountView, PassView, RetentionForm, RetentionPage, RetentionPreview, RetentionPreviewPartial,
    RetentionState, RetentionStatePartial,
};
pub use settings::{SettingsForm, SettingsPage};
pub use shared::{
    DeployProblem, EnvRow, ErrorView, FieldErrors, FormOutcome, LogRow, Moment, RecentStats,
};

#[cfg(test)]
mod tests;
