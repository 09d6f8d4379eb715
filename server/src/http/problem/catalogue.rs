//! Every error code of the API with its status and title. The only place that spells codes.

use axum::http::StatusCode;

macro_rules! catalogue {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $status:ident, $title:literal;)*) => {
        /// A stable error code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ProblemCode {
            $($(#[$doc])* $name,)*
        }

        impl ProblemCode {
            /// All codes, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The `code` member: stable, snake_case.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The status it is answered with.
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$name => StatusCode::$status,)* }
            }

            /// The `title` member: the same for every occurrence.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }

            /// The `type` member: a name, not an address, so that it stays the same wherever Hearth runs.
            pub const fn type_uri(self) -> &'static str {
                match self { $(Self::$name => concat!("urn:hearth:problem:", $code),)* }
            }
        }
    };
}

catalogue! {
    /// The body is not JSON; says line and column.
    InvalidJson = "invalid_json", BAD_REQUEST, "The body is not valid JSON";
    /// The multipart body is malformed.
    InvalidMultipart = "invalid_multipart", BAD_REQUEST, "The multipart body is malformed";
    /// The body broke off.
    BadRequestBody = "bad_request_body", BAD_REQUEST, "The body could not be read";
    /// No `Host`, several, or an invalid one.
    InvalidHost = "invalid_host", BAD_REQUEST, "The request must name exactly one host";
    /// A host that this server does not answer to.
    MisdirectedRequest = "misdirected_request", MISDIRECTED_REQUEST, "The request is for another host";
    /// No token, or an unknown one.
    Unauthorized = "unauthorized", UNAUTHORIZED, "A valid token is required";
    /// The token or user lacks the right, or the function is outside the token's scope.
    Forbidden = "forbidden", FORBIDDEN, "Permission denied";
    /// No such function, chain, version, invocation, token, user or address.
    NotFound = "not_found", NOT_FOUND, "Not found";
    /// The address exists, the method does not.
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "Method not allowed";
    /// The body arrived too slowly or not at all; the connection is closed.
    RequestTimeout = "request_timeout", REQUEST_TIMEOUT, "The request took too long to arrive";
    /// The name is taken.
    AlreadyExists = "already_exists", CONFLICT, "Already exists";
    /// A token cannot delete itself.
    TokenInUse = "token_in_use", CONFLICT, "The token is in use";
    /// The active version of a function uses it.
    SecretInUse = "secret_in_use", CONFLICT, "The secret is in use";
    /// The active version of a chain has it as a member.
    FunctionInUse = "function_in_use", CONFLICT, "The function is in use";
    /// A copy stays as it was made.
    FunctionIsCopy = "function_is_copy", CONFLICT, "The function is a copy";
    /// The experiment is over, runs, or does not run.
    ExperimentState = "experiment_state", CONFLICT, "Not in this state of the experiment";
    /// No admin would remain.
    LastAdmin = "last_admin", CONFLICT, "The last admin must stay";
    /// `If-Match` does not match the current state; nothing was changed.
    PreconditionFailed = "precondition_failed", PRECONDITION_FAILED, "Changed in the meantime";
    /// A body over its limit.
    PayloadTooLarge = "payload_too_large", PAYLOAD_TOO_LARGE, "The body is too large";
    /// The address does not accept this type of body.
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "Unsupported media type";
    /// A field breaks its rule; nothing was changed.
    InvalidField = "invalid_field", UNPROCESSABLE_ENTITY, "A field is not valid";
    /// The configuration or report of an experiment is not valid; nothing was changed.
    InvalidExperiment = "invalid_experiment", UNPROCESSABLE_ENTITY, "The experiment is not valid";
    /// The upload cannot be unpacked; nothing was changed.
    InvalidPackage = "invalid_package", UNPROCESSABLE_ENTITY, "The code cannot be unpacked";
    /// The code does not import; nothing was changed.
    ImportFailed = "import_failed", UNPROCESSABLE_ENTITY, "The code does not import";
    /// A member of the chain does not start; nothing was changed.
    ChainNotStarted = "chain_not_started", UNPROCESSABLE_ENTITY, "The chain does not start";
    /// All instances are busy and the queue is full, or too many passwords are being checked.
    TooManyRequests = "too_many_requests", TOO_MANY_REQUESTS, "Too many requests";
    /// A bug or a broken disk; the log has the details.
    Internal = "internal", INTERNAL_SERVER_ERROR, "Internal error";
    /// The handler raised an error or returned something that cannot be sent.
    FunctionError = "function_error", BAD_GATEWAY, "The function failed";
    /// The function's process died.
    FunctionCrashed = "function_crashed", BAD_GATEWAY, "The function crashed";
    /// The function was killed by its memory limit.
    FunctionOutOfMemory = "function_out_of_memory", BAD_GATEWAY, "The function ran out of memory";
    /// The result is over its limit.
    ResultTooLarge = "result_too_large", BAD_GATEWAY, "The function's result is too large";
    /// A member of a chain sent what its chain does not allow.
    ChainRuleBroken = "chain_rule_broken", BAD_GATEWAY, "A member broke the chain's rules";
    /// The template cannot be booted.
    FunctionUnavailable = "function_unavailable", SERVICE_UNAVAILABLE, "The function cannot be started";
    /// A member did not start when the server did.
    ChainUnavailable = "chain_unavailable", SERVICE_UNAVAILABLE, "The chain is not in service";
    /// All blocks of the chain's pool are in use.
    ChainPoolExhausted = "chain_pool_exhausted", SERVICE_UNAVAILABLE, "The chain's pool is exhausted";
    /// The host is out of descriptors, processes, memory, cgroups or disk space; the function is not at fault.
    HostExhausted = "host_exhausted", SERVICE_UNAVAILABLE, "The host is out of resources";
    /// The server is draining.
    ShuttingDown = "shutting_down", SERVICE_UNAVAILABLE, "The server is shutting down";
    /// All connections are in use; the request was not read.
    TooManyConnections = "too_many_connections", SERVICE_UNAVAILABLE, "Too many connections";
    /// Other uploads use all the space for uploads.
    TooManyUploads = "too_many_uploads", SERVICE_UNAVAILABLE, "Too many concurrent uploads";
    /// Not able to serve yet.
    NotReady = "not_ready", SERVICE_UNAVAILABLE, "The server is not ready";
    /// The handler ran past its deadline.
    FunctionTimeout = "function_timeout", GATEWAY_TIMEOUT, "The function took too long";
    /// The chain's members did not answer in its time.
    ChainTimeout = "chain_timeout", GATEWAY_TIMEOUT, "The chain took too long";
}

impl ProblemCode {
    /// The code with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::refusals;

    #[test]
    fn names_are_unique_and_errors() {
        for (index, code) in ProblemCode::ALL.iter().enumerate() {
            let status = code.status();
            assert!(status.is_client_error() || status.is_server_error());
            assert!(
                ProblemCode::ALL[..index]
                    .iter()
                    .all(|other| other.name() != code.name())
            );
            assert_eq!(ProblemCode::by_name(code.name()), Some(*code));
        }
    }

    #[test]
    fn refusals_are_whole_and_of_the_catalogue() {
        for (refusal, code) in [
            (refusals::FULL, Some(ProblemCode::TooManyConnections)),
            (refusals::SLOW_HEAD, Some(ProblemCode::RequestTimeout)),
            (refusals::LARGE_HEAD, None),
        ] {
            let text = std::str::from_utf8(refusal).expect("text");
            let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
            assert!(
                format!("{head}\r\n").contains(&format!("Content-Length: {}\r\n", body.len())),
                "{} bytes: {head}",
                body.len()
            );
            assert!(head.contains("Connection: close"));
            let Some(code) = code else {
                assert!(body.is_empty());
                continue;
            };
            let problem: serde_json::Value = serde_json::from_str(body).expect("JSON");
            assert_eq!(problem["status"], code.status().as_u16());
            assert_eq!(problem["code"], code.name());
            assert_eq!(problem["type"], code.type_uri());
            assert_eq!(problem["title"], code.title());
            let status = format!("HTTP/1.1 {}", code.status());
            assert!(head.starts_with(&status), "{head}");
        }
    }
}
