//! What the scheduler decided for a function.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Counts of the scheduler's decisions for a function since the server started, over all versions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DecisionCounts {
    /// Starts for queued requests.
    pub started_for_request: u64,
    /// Starts to reach what `min_instances` and `keep_warm` require.
    pub started_for_minimum: u64,
    /// Instances started or kept for a call predicted from the function's call pattern.
    pub started_ahead: u64,
    /// Predicted starts that the expected call used.
    pub ahead_hit: u64,
    /// Predicted starts that nothing used.
    pub ahead_missed: u64,
    /// Requests that waited for a busy instance because a start would not have served them sooner.
    pub queued_behind_busy: u64,
    /// Starts delayed because enough others were under way for the cores.
    pub start_deferred_by_cores: u64,
    /// Starts cancelled because another instance served the request first.
    pub start_withdrawn: u64,
    /// Starts that failed.
    pub start_failed: u64,
    /// Instances forked from a running template.
    pub forked: u64,
    /// Pre-forked (or pre-booted) instances that were used.
    pub preforked_used: u64,
    /// Instances whose template was restored from its image first.
    pub restored: u64,
    /// Instances whose template was booted first.
    pub booted: u64,
    /// Instances ended after `idle_timeout_s`.
    pub expired_idle: u64,
    /// Idle instances ended under memory pressure.
    pub evicted_memory: u64,
    /// Templates released after `template_idle_timeout_s` without a call.
    pub template_expired: u64,
    /// Templates released under memory pressure.
    pub template_evicted: u64,
    /// Images removed under memory pressure.
    pub image_evicted: u64,
}

impl DecisionCounts {
    /// Each with its name in the API and what it means, in the order of a start's life.
    pub fn entries(&self) -> [(&'static str, u64, &'static str); 18] {
        [
            (
                "started_for_request",
                self.started_for_request,
                "Starts for queued requests",
            ),
            (
                "started_for_minimum",
                self.started_for_minimum,
                "Starts to reach min_instances",
            ),
            (
                "started_ahead",
                self.started_ahead,
                "Instances pre-started for a predicted call",
            ),
            ("ahead_hit", self.ahead_hit, "Of those, used"),
            ("ahead_missed", self.ahead_missed, "Of those, never used"),
            (
                "queued_behind_busy",
                self.queued_behind_busy,
                "Requests that waited for a busy instance because a start would have taken longer",
            ),
            (
                "start_deferred_by_cores",
                self.start_deferred_by_cores,
                "Starts delayed because enough others were under way for the cores",
            ),
            (
                "start_withdrawn",
                self.start_withdrawn,
                "Starts cancelled because another instance served the request first",
            ),
            ("start_failed", self.start_failed, "Starts that failed"),
            (
                "forked",
                self.forked,
                "Instances forked from a running template",
            ),
            (
                "preforked_used",
                self.preforked_used,
                "Pre-forked instances that were used",
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
                "Idle instances ended under memory pressure",
            ),
            (
                "template_expired",
                self.template_expired,
                "Templates released after the template idle timeout",
            ),
            (
                "template_evicted",
                self.template_evicted,
                "Templates released under memory pressure",
            ),
            (
                "image_evicted",
                self.image_evicted,
                "Images removed under memory pressure",
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
