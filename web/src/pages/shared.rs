//! Pieces that several pages show.

use std::collections::BTreeMap;

use askama::Template;
use jiff::Timestamp;

use crate::format;

/// A point in time, shown relative to `now` with the absolute time on hover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The point.
    pub at: Timestamp,
    /// When the page is rendered.
    pub now: Timestamp,
}

impl Moment {
    /// `3 min ago`.
    pub fn relative(&self) -> String {
        format::relative(self.at, self.now)
    }
    /// `in 3 min`, of a time to come.
    pub fn until(&self) -> String {
        format::until(self.at, self.now)
    }
    /// Whether it lies behind.
    pub fn is_past(&self) -> bool {
        self.at <= self.now
    }
    /// `2025-01-31 10:11:12.345 UTC`.
    pub fn absolute(&self) -> String {
        format::absolute(self.at)
    }
    /// RFC 3339.
    pub fn machine(&self) -> String {
        format::machine(self.at)
    }
}

/// An error of a function as Lambda shapes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorView {
    /// Name of the exception's type.
    pub error_type: String,
    /// Its message.
    pub message: String,
    /// Frames, outermost first.
    pub stack_trace: Vec<String>,
}

/// One line a function wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    /// When the server read it.
    pub time: Timestamp,
    /// `stdout` or `stderr`.
    pub stream: &'static str,
    /// The line.
    pub text: String,
}

impl LogRow {
    /// `10:11:12.345`.
    pub fn clock(&self) -> String {
        format::time_of_day(self.time)
    }
    /// Whether both were written on the same day.
    pub fn is_same_day(&self, other: &Self) -> bool {
        self.day() == other.day()
    }
    /// `2025-01-31`.
    pub fn day(&self) -> String {
        format::day(self.time)
    }
    /// RFC 3339, for `<time datetime>`.
    pub fn machine(&self) -> String {
        format::machine(self.time)
    }
    /// Date and time, for the tooltip.
    pub fn absolute(&self) -> String {
        format::absolute(self.time)
    }
}

/// A percentile, which few samples do not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Percentile {
    /// Its value in µs; none where it would be the maximum.
    pub us: Option<u64>,
    /// Samples that it needs.
    pub needs: u64,
    /// Number of samples.
    pub has: u64,
}

impl Percentile {
    /// The duration, or a dash.
    pub fn text(&self) -> String {
        self.us.map_or_else(|| "–".to_owned(), format::duration_us)
    }
    /// Why it is a dash: `needs 100 samples, has 9`. Empty otherwise.
    pub fn title(&self) -> String {
        match self.us {
            Some(_) => String::new(),
            None => format!(
                "needs {} samples, has {}",
                format::count(self.needs),
                format::count(self.has)
            ),
        }
    }
}

/// The last five minutes of a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecentStats {
    /// Finished invocations.
    pub count: u64,
    /// Those that did not succeed.
    pub errors: u64,
    /// Median of the total.
    pub p50: Percentile,
    /// 99th percentile of the total.
    pub p99: Percentile,
}

impl RecentStats {
    /// Grouped count.
    pub fn invoked(&self) -> String {
        format::count(self.count)
    }
    /// Grouped count of errors.
    pub fn failed(&self) -> String {
        format::count(self.errors)
    }
    /// `1 error`, `2 errors`.
    pub fn errors_in_words(&self) -> String {
        format::plural(self.errors, "error")
    }
}

/// One environment variable of a form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvRow {
    /// Its name.
    pub name: String,
    /// Its value as typed.
    pub value: String,
}

/// What is wrong with the fields of a form: field name and rule. `env` and `code` stand for their parts as well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldErrors(BTreeMap<String, String>);

impl FieldErrors {
    /// One field's error. `env.FOO` is shown at `env`, `code.inline` at `code`.
    pub fn one(field: &str, message: String) -> Self {
        let slot = field.split('.').next().unwrap_or(field);
        Self(BTreeMap::from([(slot.to_owned(), message)]))
    }
    /// The message at a field, or nothing.
    pub fn of(&self, field: &str) -> &str {
        self.0.get(field).map_or("", String::as_str)
    }
    /// Whether any field in `fields` has an error.
    pub fn any(&self, fields: &[&str]) -> bool {
        fields.iter().any(|field| self.0.contains_key(*field))
    }
    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A shell command that does what a page does, for who would rather have it in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What it does, in a few words.
    pub what: &'static str,
    /// The command.
    pub line: String,
}

/// A line of a function's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePlace {
    /// Path of the file in the code.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
}

/// Why a deploy or a change failed, apart from a field's error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeployProblem {
    /// One line.
    pub title: String,
    /// What to do about it, or more about it; may be empty.
    pub detail: String,
    /// The exception that stopped the import.
    pub error: Option<ErrorView>,
    /// What the import printed.
    pub output: Vec<LogRow>,
    /// Where in the function's code it went wrong: the editor marks the line.
    pub place: Option<CodePlace>,
    /// The request's id, to be found in the server's log.
    pub request_id: String,
}

/// `partials/form_outcome.html`: the response to a rejected form. It leaves the form in place, so that input and chosen
/// file are kept, and puts each message at its field out of band.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/form_outcome.html")]
pub struct FormOutcome {
    /// The fields that have a place for a message.
    pub fields: &'static [&'static str],
    /// Their messages.
    pub errors: FieldErrors,
    /// What else went wrong.
    pub problem: Option<DeployProblem>,
    /// What the form is based on from now on; `None` leaves that as it is.
    pub revision: Option<String>,
}
