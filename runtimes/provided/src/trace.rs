//! Trace contexts, as AWS has them.

/// The W3C trace context in AWS X-Ray's form: the first 8 of a trace's 32 digits are its time there.
pub(crate) fn of_trace_context(traceparent: &str) -> Option<String> {
    let mut parts = traceparent.split('-').skip(1);
    let (trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?);
    let (time, rest) = trace.split_at_checked(8)?;
    let is_sampled = u8::from_str_radix(flags, 16).ok()? & 1;
    Some(format!(
        "Root=1-{time}-{rest};Parent={parent};Sampled={is_sampled}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_context_has_xrays_form() {
        assert_eq!(
            of_trace_context("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").as_deref(),
            Some("Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=1")
        );
        assert_eq!(of_trace_context("00-0af7"), None);
    }
}
