//! The engine's request, response and error types.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::model::{Changed, FunctionError, InvalidField, LogLine};
use crate::package::PackageError;
use crate::store::StoreError;

/// Everything that can go wrong with a change.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// 412 `precondition_failed`: somebody else changed it first.
    #[error("the function {0}")]
    Changed(#[from] Changed),
    /// 404 `not_found`: "function \"x\"", "version 3 of \"x\"".
    #[error("there is no {0}")]
    NotFound(String),
    /// 409 `already_exists`.
    #[error(
        "a function named \"{0}\" already exists; upload new code with \
         PUT /api/v1/functions/{0}/code, or delete it first"
    )]
    AlreadyExists(String),
    /// 422 `invalid_field`.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// 422 `invalid_package`: the upload cannot be unpacked.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// 422 `import_failed`: the code was unpacked but does not import; with the traceback and what it printed.
    #[error("{}: {}", error.error_type, error.error_message)]
    Import {
        /// The exception, as Lambda shapes it.
        error: FunctionError,
        /// What the import printed.
        logs: Vec<LogLine>,
    },
    /// 409 `secret_in_use`: functions could not start without it.
    #[error("the secret \"{name}\" is used by {}; take it out of their settings first", functions.join(", "))]
    SecretInUse {
        /// Its name.
        name: String,
        /// Functions whose active version uses it.
        functions: Vec<String>,
    },
    /// 409 `function_is_copy`: a copy stays as it was made.
    #[error(
        "the function \"{0}\" is a copy of another one's version and cannot be changed; delete it, or make another copy"
    )]
    IsCopy(String),
    /// 503 `host_exhausted`: nothing is wrong with the function; try again.
    #[error("{0}")]
    HostExhausted(String),
    /// 503 `shutting_down`.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// 500 `internal`.
    #[error("internal error: {0}")]
    Internal(String),
}

/// Everything an invocation can end with except a result. See api.md's table.
#[derive(Debug, thiserror::Error)]
pub enum InvokeError {
    /// 404 `not_found`.
    #[error("there is no function \"{0}\"")]
    NotFound(String),
    /// 404 `not_found`: "version 3 of function \"x\"".
    #[error("there is no {0}")]
    NoVersion(String),
    /// 502 `function_error`.
    #[error("{}: {}", .0.error_type, .0.error_message)]
    Function(FunctionError),
    /// 504 `function_timeout`.
    #[error("the handler did not answer within {0} ms; its instance was killed")]
    Timeout(u32),
    /// 502 `function_crashed`: "signal 11 (SIGSEGV)", "exit status 3", "it broke the channel's protocol: …".
    #[error("the function's process died before it answered: {0}")]
    Crashed(String),
    /// 502 `function_out_of_memory`.
    #[error("the function used more than its {0} MiB of memory and was killed")]
    OutOfMemory(u32),
    /// 502 `function_error`, `Runtime.InvalidResult`: what the worker sent as a result is not JSON.
    #[error("the result is not JSON: {0}")]
    InvalidResult(String),
    /// 502 `result_too_large`: size so far and limit in bytes.
    #[error("the result is larger than {limit} bytes")]
    ResultTooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// 429 `too_many_requests`.
    #[error("all {max_concurrency} instances are busy and {queued} requests are waiting")]
    TooManyRequests {
        /// Instances that may run at once.
        max_concurrency: u32,
        /// Length of the full queue.
        queued: u32,
        /// When to retry.
        retry_after: Duration,
    },
    /// 503 `function_unavailable`: the template could not be booted (its code no longer imports, its process ended).
    #[error("the function cannot be started: {0}")]
    Unavailable(String),
    /// 503 `host_exhausted`: the host had no descriptor, process, memory, cgroup … to give. Nothing is wrong with the function.
    #[error("the function cannot be started now: {0}")]
    HostExhausted(String),
    /// 400 `bad_request_body`: the client's body broke off.
    #[error("the request's body could not be read: {0}")]
    RequestBody(String),
    /// The answer was cut: its client did not read it within the function's time.
    #[error(
        "the client did not read the answer within the function's timeout of {0} ms; the instance was killed"
    )]
    NotRead(u32),
    /// 408 `request_timeout`: the client's body came too slowly, or not within the function's time.
    #[error("{0}")]
    RequestTimeout(String),
    /// 503 `shutting_down`.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// 500 `internal`.
    #[error("internal error: {0}")]
    Internal(String),
}

impl From<std::io::Error> for EngineError {
    fn from(error: std::io::Error) -> Self {
        Self::Internal(error.to_string())
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Exists(name) => Self::AlreadyExists(name),
            other => Self::Internal(other.to_string()),
        }
    }
}

impl InvokeError {
    /// A body that could not be read. One that is [`std::io::ErrorKind::TimedOut`] was too slow.
    pub(crate) fn body(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::TimedOut => Self::RequestTimeout(error.to_string()),
            _ => Self::RequestBody(error.to_string()),
        }
    }
}

/// An answer.
pub enum InvokeReply {
    /// The handler's result as JSON text of an invoke.
    Json(Bytes),
    /// A payload-2.0 response of an HTTP trigger.
    Http {
        /// HTTP status, 100–599.
        status: u16,
        /// Header names and values, cookies included as `set-cookie`.
        headers: Vec<(String, String)>,
        /// The body as it comes; an error ends it abnormally. Dropping it early cancels the invocation.
        body: BoxStream<'static, Result<Bytes, std::io::Error>>,
    },
}
