//! What the scheduler decided for a function.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Counts of the scheduler's decisions for one function since the server started, through all of its versions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DecisionCounts {
    /// Starts begun for requests that waited.
    pub started_for_request: u64,
    /// Of those, because the queue lasted although its requests were short.
    pub started_for_backlog: u64,
    /// Starts begun because fewer instances lived than `min_instances` and `keep_warm` ask for.
    pub started_for_minimum: u64,
    /// Starts begun, or instances kept, ahead of a call that was expected from the function's rhythm.
    pub started_ahead: u64,
    /// Of those, followed by the call.
    pub ahead_hit: u64,
    /// Of those, in vain.
    pub ahead_missed: u64,
    /// Requests that waited for a busy instance because a start would not have served them sooner.
    pub queued_behind_busy: u64,
    /// Starts that waited for their turn because the cores had enough starts to do.
    pub start_deferred_by_cores: u64,
    /// Starts given up before they began: what they were for was served meanwhile.
    pub start_withdrawn: u64,
    /// Starts that failed.
    pub start_failed: u64,
    /// Instances that came off a template that was up.
    pub forked: u64,
    /// Of all instances started, those that had been made ahead: forked, or brought up where they do not fork.
    pub preforked_used: u64,
    /// Instances whose template was restored from its image first.
    pub restored: u64,
    /// Instances whose template was booted first.
    pub booted: u64,
    /// Instances ended because they were idle for longer than `idle_timeout_s`.
    pub expired_idle: u64,
    /// Idle instances ended because memory was short.
    pub evicted_memory: u64,
    /// Templates let go because the function was not called for `template_idle_timeout_s`.
    pub template_expired: u64,
    /// Templates let go because memory was short.
    pub template_evicted: u64,
    /// Images removed because memory was short.
    pub image_evicted: u64,
}

impl DecisionCounts {
    /// Each with its name in the API and what it means, in the order of a start's life.
    pub fn entries(&self) -> [(&'static str, u64, &'static str); 19] {
        [
            (
                "started_for_request",
                self.started_for_request,
                "Starts for requests that waited",
            ),
            (
                "started_for_backlog",
                self.started_for_backlog,
                "Of those, because the queue lasted",
            ),
            (
                "started_for_minimum",
                self.started_for_minimum,
                "Starts to have the minimum of instances",
            ),
            (
                "started_ahead",
                self.started_ahead,
                "Instances made ready ahead of an expected call",
            ),
            ("ahead_hit", self.ahead_hit, "Of those, the call came"),
            ("ahead_missed", self.ahead_missed, "Of those, nobody called"),
            (
                "queued_behind_busy",
                self.queued_behind_busy,
                "Requests that waited for a busy instance, since a start would have taken longer",
            ),
            (
                "start_deferred_by_cores",
                self.start_deferred_by_cores,
                "Starts that waited for their turn, since the cores had enough to start",
            ),
            (
                "start_withdrawn",
                self.start_withdrawn,
                "Starts given up before they began: their requests were served meanwhile",
            ),
            ("start_failed", self.start_failed, "Starts that failed"),
            (
                "forked",
                self.forked,
                "Instances forked off a template that was up",
            ),
            (
                "preforked_used",
                self.preforked_used,
                "Instances that had been made ahead",
            ),
            (
                "restored",
                self.restored,
                "Instances whose template was restored from its image",
            ),
            (
                "booted",
                self.booted,
                "Instances whose template was booted first",
            ),
            (
                "expired_idle",
                self.expired_idle,
                "Instances ended after the idle timeout",
            ),
            (
                "evicted_memory",
                self.evicted_memory,
                "Idle instances ended because memory was short",
            ),
            (
                "template_expired",
                self.template_expired,
                "Templates let go after the template's idle timeout",
            ),
            (
                "template_evicted",
                self.template_evicted,
                "Templates let go because memory was short",
            ),
            (
                "image_evicted",
                self.image_evicted,
                "Images removed because memory was short",
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entries_are_the_fields() {
        let json = serde_json::to_value(DecisionCounts::default()).unwrap();
        let fields: Vec<&str> = json
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let mut names = DecisionCounts::default().entries().map(|entry| entry.0);
        names.sort_unstable();
        let mut fields = fields;
        fields.sort_unstable();
        assert_eq!(fields, names);
    }
}
