//! What most likely explains an invocation's time, in a sentence.

use hearth_web::format::{duration_us, percent};

use super::{CROWDED, Facts, MOST, SOME, name};
use crate::model::{Cause, CauseKind};

impl Facts<'_> {
    /// What most likely explains it. `causes` is what [`Self::causes`] has returned.
    pub(in crate::tail) fn summary(&self, causes: &[Cause]) -> String {
        let excess = self.excess_us();
        let Some(median) = self.median else {
            return format!(
                "There is nothing to compare it with: the function was not called twice in 7 days. {}",
                self.longest_stage()
            );
        };
        if excess == 0 {
            return format!(
                "It was not slow: the median is {}.",
                duration_us(median.total)
            );
        }
        let by = format!(
            "{} above the median of {}",
            duration_us(excess),
            duration_us(median.total)
        );
        let share = |cause: &Cause| cause.share.unwrap_or_default();
        if let Some(cause) = causes.iter().find(|cause| share(cause) >= MOST) {
            let how = match (cause.kind, cause.is_own) {
                (CauseKind::PageFaults, _) => "by estimate",
                (_, true) => "measured in this invocation",
                (CauseKind::Throttling, false) => "at most, by the sandbox's counter around it",
                (_, false) => "for its length, by the host's counter around it",
            };
            return format!(
                "Most likely {}: {}. That is {} of the {by}, {how}.",
                name(cause.kind),
                cause.figure,
                percent(share(cause)),
            );
        }
        let crowded = self
            .window
            .and_then(|window| window.cpu_pressure)
            .filter(|pressure| *pressure >= CROWDED);
        let preempted = causes
            .iter()
            .find(|cause| cause.kind == CauseKind::Preemption);
        if let (Some(preempted), Some(pressure)) = (preempted, crowded) {
            return format!(
                "Probably {}: {}, while something waited for one in {} of the time. How long it was off is not counted. It took {by}.",
                name(CauseKind::Preemption),
                preempted.figure,
                percent(pressure)
            );
        }
        let missing = match self.window {
            Some(_) => "",
            None => " The host's counters do not reach back to it.",
        };
        if let Some(cause) = causes.iter().find(|cause| share(cause) >= SOME) {
            return format!(
                "Only a part is explained, by {}: {}, {} of the {by}. {}{missing}",
                name(cause.kind),
                cause.figure,
                percent(share(cause)),
                self.longest_stage()
            );
        }
        format!(
            "No counter explains it. It took {by}. {}{missing}",
            self.longest_stage()
        )
    }

    /// Where most of the excess went, in a sentence.
    fn longest_stage(&self) -> String {
        let (now, usual) = (
            &self.record.stages_us,
            self.median.copied().unwrap_or_default(),
        );
        let stages = [
            ("the queue", now.queue, usual.queue),
            ("the start", now.start, usual.start),
            ("the delivery of the request", now.send, usual.send),
            ("the handler itself", now.run, usual.run),
            ("the delivery of the response", now.recv, usual.recv),
        ];
        let longest = stages
            .into_iter()
            .max_by_key(|(_, now, usual)| now.saturating_sub(*usual));
        let (stage, now, usual) = longest.unwrap_or(("the handler itself", now.run, usual.run));
        match self.median {
            Some(_) => format!(
                "Most of it went into {stage}: {} instead of {}.",
                duration_us(now),
                duration_us(usual)
            ),
            None => format!("Most of its time went into {stage}: {}.", duration_us(now)),
        }
    }
}
