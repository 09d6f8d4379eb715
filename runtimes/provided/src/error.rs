//! Errors as clients of the Runtime API report them, in the one shape that the server takes.

use serde::Serialize;
use serde_json::Value;

/// Longest message, in bytes: an error is stored with its invocation.
const MESSAGE_BYTES: usize = 16 * 1024;
/// Longest type, in bytes.
const TYPE_BYTES: usize = 256;
/// Most entries of a stack trace, and bytes of each.
const TRACE_MAX: (usize, usize) = (100, 512);

/// An error in AWS Lambda's shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FunctionError {
    error_type: String,
    error_message: String,
    stack_trace: Vec<String>,
}

impl FunctionError {
    pub(crate) fn new(error_type: &str, message: &str) -> Self {
        Self {
            error_type: clipped(error_type, TYPE_BYTES),
            error_message: clipped(message, MESSAGE_BYTES),
            stack_trace: Vec::new(),
        }
    }

    /// What a client has reported: an object with `errorType` and `errorMessage`, the type perhaps in a header only. A body that
    /// is no such object is the message.
    pub(crate) fn reported(body: &[u8], header: Option<&str>) -> Self {
        let object = match serde_json::from_slice(body) {
            Ok(Value::Object(object)) => object,
            _ => {
                let text = String::from_utf8_lossy(body);
                return Self::new(header.unwrap_or("Runtime.Unknown"), text.trim());
            }
        };
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        let error_type = text("errorType").filter(|text| !text.is_empty());
        let mut error = Self::new(
            error_type.or(header).unwrap_or("Runtime.Unknown"),
            text("errorMessage").unwrap_or_default(),
        );
        if let Some(Value::Array(frames)) = object.get("stackTrace") {
            let frames = frames.iter().take(TRACE_MAX.0);
            error.stack_trace = frames
                .map(|one| clipped(&frame(one), TRACE_MAX.1))
                .collect();
        }
        error
    }

    /// The text that travels.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        // Strings have no reason to fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// One entry of a stack trace: text, or Go's objects.
fn frame(entry: &Value) -> String {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    match (entry, text("path"), entry.get("line")) {
        (Value::String(text), ..) => text.clone(),
        (_, Some(path), Some(line)) => {
            let label = text("label").unwrap_or_default();
            format!("{path}:{line} {label}").trim_end().to_owned()
        }
        (other, ..) => other.to_string(),
    }
}

fn clipped(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    format!("{} … (cut)", &text[..text.floor_char_boundary(limit)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(body: &str, header: Option<&str>) -> String {
        String::from_utf8(FunctionError::reported(body.as_bytes(), header).to_json()).expect("text")
    }

    #[test]
    fn what_clients_report_has_one_shape() {
        assert_eq!(
            reported(
                r#"{"errorMessage":"m","errorType":"T","stackTrace":[{"path":"a.go","line":7,"label":"f"},"b",1]}"#,
                Some("Header")
            ),
            r#"{"errorType":"T","errorMessage":"m","stackTrace":["a.go:7 f","b","1"]}"#
        );
        assert_eq!(
            reported(r#"{"errorMessage":"m"}"#, Some("Function.Failed")),
            r#"{"errorType":"Function.Failed","errorMessage":"m","stackTrace":[]}"#
        );
        assert_eq!(
            reported("no JSON\n", None),
            r#"{"errorType":"Runtime.Unknown","errorMessage":"no JSON","stackTrace":[]}"#
        );
    }

    #[test]
    fn what_clients_report_is_bounded() {
        let long = "ä".repeat(MESSAGE_BYTES);
        let frames = vec![long.clone(); 1000];
        let body =
            serde_json::json!({"errorMessage": long, "errorType": long, "stackTrace": frames});
        let error = FunctionError::reported(body.to_string().as_bytes(), None);
        assert_eq!(error.stack_trace.len(), TRACE_MAX.0);
        assert!(error.to_json().len() < 128 * 1024);
    }
}
