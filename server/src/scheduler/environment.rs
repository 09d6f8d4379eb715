//! The environment of a version's template: what every process needs, what AWS Lambda's functions expect, and the
//! function's own variables, which override both.

use std::collections::BTreeMap;

use crate::model::{FunctionSpec, Runtime};
use crate::runtimes::RuntimeFiles;
use crate::sandbox::{TRUST, TRUST_ALL};
use crate::secrets::Secrets;

/// Path of the code inside.
const TASK_ROOT: &str = "/var/task";
/// A region for SDKs that require one: local AWS emulators use it, too.
const REGION: &str = "us-east-1";

/// By what programs are told which certificates to trust: OpenSSL and all that use it as it comes, curl, Python's `requests`,
/// the SDKs of AWS; Node.js adds them to its own.
const TRUSTING: [(&str, &str); 5] = [
    ("SSL_CERT_FILE", TRUST_ALL),
    ("CURL_CA_BUNDLE", TRUST_ALL),
    ("REQUESTS_CA_BUNDLE", TRUST_ALL),
    ("AWS_CA_BUNDLE", TRUST_ALL),
    ("NODE_EXTRA_CA_CERTS", TRUST),
];

/// A function has a secret that is not there.
#[derive(Debug, thiserror::Error)]
#[error("there is no secret \"{0}\"; make it with PUT /api/v1/secrets/{0}")]
pub(super) struct NoSecret(String);

/// All variables by name.
pub(super) fn environment(
    spec: &FunctionSpec,
    version: u32,
    runtime: &RuntimeFiles,
    secrets: &Secrets,
) -> Result<Vec<(String, String)>, NoSecret> {
    let FunctionSpec { name, handler, .. } = spec;
    let version = version.to_string();
    let defaults = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ("HOME", "/tmp".into()),
        ("LANG", "C.UTF-8".into()),
        ("TZ", ":UTC".into()),
        ("AWS_DEFAULT_REGION", REGION.into()),
        ("AWS_REGION", REGION.into()),
        (
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
            spec.memory_mb.to_string(),
        ),
        ("AWS_LAMBDA_FUNCTION_NAME", name.clone()),
        ("AWS_LAMBDA_FUNCTION_VERSION", version.clone()),
        (
            "AWS_LAMBDA_INITIALIZATION_TYPE",
            initialization(runtime).into(),
        ),
        ("AWS_LAMBDA_LOG_GROUP_NAME", format!("/hearth/{name}")),
        // Each instance appends its process, as its context does.
        ("AWS_LAMBDA_LOG_STREAM_NAME", version.clone()),
        // There is no X-Ray daemon: the SDK then does nothing, instead of failing at each segment.
        ("AWS_XRAY_CONTEXT_MISSING", "IGNORE_ERROR".into()),
        ("AWS_XRAY_SDK_ENABLED", "false".into()),
        (
            "LAMBDA_RUNTIME_DIR",
            format!("/opt/hearth/{}", runtime.name),
        ),
        ("LAMBDA_TASK_ROOT", TASK_ROOT.into()),
        ("_HANDLER", handler.clone()),
        ("HEARTH_FUNCTION", name.clone()),
        ("HEARTH_VERSION", version),
    ];
    let mut variables: BTreeMap<String, String> = defaults
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    if let Some(name) = execution_env(spec.runtime, &runtime.version) {
        variables.insert("AWS_EXECUTION_ENV".to_owned(), name);
    }
    if spec.secrets.iter().any(|given| given.brokered().is_some()) {
        variables.extend(TRUSTING.map(|(name, file)| (name.to_owned(), file.to_owned())));
    }
    variables.extend(spec.env.clone());
    for given in &spec.secrets {
        if let Some(variable) = given.env() {
            let name = given.secret();
            let value = secrets
                .value(name)
                .ok_or_else(|| NoSecret(name.to_owned()))?;
            secrets.note_use(name);
            variables.insert(variable.to_owned(), value.as_str().to_owned());
        }
    }
    Ok(variables.into_iter().collect())
}

/// How instances are initialised, in Lambda's terms: from a snapshot taken after the import, or individually.
fn initialization(runtime: &RuntimeFiles) -> &'static str {
    match (&runtime.fork, runtime.becomes) {
        (Ok(()), None) => "snap-start",
        _ => "on-demand",
    }
}

/// `AWS_Lambda_python3.11`, `AWS_Lambda_nodejs20.x`; none of what brings its own runtime, as on Lambda.
fn execution_env(runtime: Runtime, version: &Result<String, String>) -> Option<String> {
    let mut parts = version.as_deref().unwrap_or_default().split('.');
    let major = parts.next().unwrap_or_default();
    match runtime {
        Runtime::Python3 => {
            let minor = parts.next().unwrap_or_default();
            Some(format!("AWS_Lambda_python{major}.{minor}"))
        }
        Runtime::Node => Some(format!("AWS_Lambda_nodejs{major}.x")),
        Runtime::Native | Runtime::Provided => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_execution_environment_is_named_as_lambda_names_it() {
        let version = |text: &str| Ok(text.to_owned());
        assert_eq!(
            execution_env(Runtime::Python3, &version("3.11.2")).as_deref(),
            Some("AWS_Lambda_python3.11")
        );
        assert_eq!(
            execution_env(Runtime::Node, &version("22.4.1")).as_deref(),
            Some("AWS_Lambda_nodejs22.x")
        );
        for own in [Runtime::Native, Runtime::Provided] {
            assert_eq!(execution_env(own, &version("0.1.0")), None);
        }
    }
}
