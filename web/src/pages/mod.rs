//! The view models, one module a page: plain data, filled by the server, rendered by the template named beside it.

mod account;
mod audit;
mod code;
mod error;
mod function;
mod functions;
mod invocation;
mod login;
mod new;
mod people;
mod settings;
mod setup;
mod shared;
mod tokens;

pub use account::{AccountPage, SessionRow};
pub use audit::{AuditPage, AuditRow};
pub use code::{CodePage, CodeUpload, VersionRow};
pub use error::ErrorPage;
pub use function::{
    DecisionRow, FunctionHead, FunctionHeadPartial, FunctionPage, HistoryPartial, HistoryRow,
    HistoryView, ImageRow, InvokeOutcome, InvokeOutcomePartial, STATUS_FILTERS, Tab,
};
pub use functions::{FunctionRow, FunctionsPage, FunctionsTable};
pub use invocation::{InvocationDetails, InvocationPage};
pub use login::LoginPage;
pub use new::{FunctionForm, NewPage};
pub use people::{MadePassword, NewPerson, PeoplePage, PersonPage, PersonRow, RoleChoice};
pub use settings::{SettingsForm, SettingsPage};
pub use setup::SetupPage;
pub use shared::{
    DeployProblem, EnvRow, ErrorView, FieldErrors, FormOutcome, LogRow, Moment, RecentStats,
};
pub use tokens::{EXPIRIES, MadeToken, NewTokenForm, RIGHTS, TokenRow, TokensPage};

#[cfg(test)]
mod tests;
