//! How fast a function's versions run, over time: by its history, and by the duets that compared them.

use std::collections::BTreeMap;
use std::time::Duration;

use hearth_lab::duet::Subject;
use hearth_lab::duet::report::is_from_history;
use hearth_lab::statistics::quantile::{median, observed, sort};
use hearth_lab::statistics::ranks::Middle;
use jiff::Timestamp;
use serde_json::Value;

use super::{Lab, LabError};
use crate::model::{
    Change, ComparedEvent, Performance, PerformancePoint, VersionComparison, VersionPerformance,
    samples_needed,
};
use crate::store::{StoredComparison, VersionTimes};

/// Parts of the window.
const PARTS: u32 = 60;
/// Newest runs of each version that are looked at.
const RUNS: u32 = 2_000;
/// Newest invocations of each part that are.
const RUNS_OF_PART: u32 = 1_000;
/// Confidence of a duet that does not say.
const CONFIDENCE: f64 = 0.99;

impl Lab {
    /// How fast a function's versions ran in the last `window`. Reads 160,000 invocations at most.
    ///
    /// # Errors
    /// [`LabError::Engine`] when there is no such function, [`LabError::Store`].
    pub async fn performance(&self, name: &str, window: Duration) -> Result<Performance, LabError> {
        let function = self.function_id(name)?;
        let view = self.0.engine.get(name)?;
        let active = view.active_version;
        let store = &self.0.store;
        let to = Timestamp::now();
        let from = to.saturating_sub(window).unwrap_or(Timestamp::MIN);
        let part = window / PARTS;
        let mut points = Vec::new();
        for index in 0..PARTS {
            let at = from.saturating_add(part * index).unwrap_or(to);
            let end = at.saturating_add(part).unwrap_or(to);
            let runs = store.warm_runs_between(function, at, end, RUNS_OF_PART);
            points.extend(points_of(at, runs.await?));
        }
        let mut versions = Vec::new();
        let mut newer: Option<Middle> = None;
        for times in store.version_times(function).await? {
            let runs = store.warm_runs_of(function, times.version, from, RUNS);
            let (one, middle) = version_of(&times, runs.await?);
            if let (Some(middle), Some(newer), Some(last)) =
                (&middle, &newer, last_with_runs(&mut versions))
            {
                last.change = newer
                    .change_from(middle)
                    .map(|(estimate, interval)| Change {
                        estimate,
                        low: interval.low,
                        high: interval.high,
                    });
            }
            newer = middle.or(newer);
            if one.runs > 0 || one.version == active {
                versions.push(one);
            }
        }
        let gates = store.version_gates(function).await?;
        // Not those of a former function of its name.
        let comparisons = store.comparisons_of(name, from, view.created_at).await?;
        let comparisons = comparisons
            .iter()
            .filter_map(|stored| comparison_of(name, stored))
            .map(|mut found| {
                let asked = gates.get(&found.second);
                let asked = asked.filter(|gate| gate.experiment == found.experiment);
                found.gate = asked.map(|gate| gate.state);
                found
            });
        Ok(Performance {
            function: name.to_owned(),
            from,
            to,
            part_s: part.as_secs(),
            comparisons: comparisons.collect(),
            versions,
            points,
        })
    }
}

/// The version whose change is not known yet: the one before in the list that has enough runs for an interval.
fn last_with_runs(versions: &mut [VersionPerformance]) -> Option<&mut VersionPerformance> {
    let least = hearth_lab::statistics::ranks::SAMPLES_MIN as u64;
    versions.iter_mut().rev().find(|one| one.runs >= least)
}

fn figures(mut runs: Vec<f64>) -> (Option<u64>, Option<u64>, Vec<f64>) {
    sort(&mut runs);
    let known = |per_mille: u64| runs.len() as u64 >= samples_needed(per_mille);
    let p99 = observed(&runs, 0.99).filter(|_| known(990));
    let middle = median(&mut runs.clone()).filter(|_| known(500));
    let whole = |us: f64| us.round() as u64;
    (middle.map(whole), p99.map(whole), runs)
}

fn version_of(times: &VersionTimes, runs: Vec<u64>) -> (VersionPerformance, Option<Middle>) {
    let count = runs.len() as u64;
    let runs = runs.into_iter().map(|us| us as f64).collect();
    let (median_us, p99_us, mut runs) = figures(runs);
    let one = VersionPerformance {
        version: times.version,
        created_at: times.created_at,
        activated_at: times.activated_at,
        runs: count,
        median_us,
        p99_us,
        change: None,
    };
    (one, Middle::of(&mut runs))
}

/// A point for each version that ran in a part of the window.
fn points_of(at: Timestamp, runs: Vec<(u32, u64)>) -> Vec<PerformancePoint> {
    let mut by_version: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (version, us) in runs {
        by_version.entry(version).or_default().push(us as f64);
    }
    let points = by_version.into_iter().map(|(version, runs)| {
        let count = runs.len() as u64;
        let only = runs.first().copied().unwrap_or_default() as u64;
        let (median_us, p99_us, _) = figures(runs);
        PerformancePoint {
            at,
            version,
            runs: count,
            median_us: median_us.unwrap_or(only),
            p99_us,
        }
    });
    points.collect()
}

/// What an experiment says of two versions of a function; none if that is not what it compared.
fn comparison_of(name: &str, stored: &StoredComparison) -> Option<VersionComparison> {
    let version = |field: &str| {
        let subject: Subject = stored.result[field].as_str()?.parse().ok()?;
        subject.version.filter(|_| subject.function == name)
    };
    let (first, second) = (version("first")?, version("second")?);
    if first == second {
        return None;
    }
    let events = stored.result["benchmarks"].as_array()?.iter();
    // Compared with times of another day, which says nothing of the version.
    let events = events.filter(|one| !is_from_history(&stored.result, one));
    let event = |one: &Value| ComparedEvent {
        name: one["title"].as_str().unwrap_or_default().to_owned(),
        change: change_of(&one["change"]),
        verdict: one["verdict"].as_str().map(str::to_owned),
    };
    Some(VersionComparison {
        experiment: stored.id,
        kind: stored.kind.clone(),
        first,
        second,
        ended_at: stored.ended_at,
        gate: None,
        confidence: stored.confidence.unwrap_or(CONFIDENCE),
        events: events.map(event).collect(),
    })
}

fn change_of(found: &Value) -> Option<Change> {
    Some(Change {
        estimate: found["estimate"].as_f64()?,
        low: found["percentile"]["low"].as_f64()?,
        high: found["percentile"]["high"].as_f64()?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored(first: &str, second: &str) -> StoredComparison {
        StoredComparison {
            id: 7,
            kind: "duet".to_owned(),
            confidence: Some(0.95),
            result: json!({"first": first, "second": second, "benchmarks": [
                {"title": "small", "verdict": "slower",
                 "change": {"estimate": 0.2, "percentile": {"low": 0.1, "high": 0.3}}},
                {"title": "left out", "verdict": null, "change": null},
            ]}),
            ended_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn only_comparisons_of_two_versions_count() {
        let found = comparison_of("f", &stored("f@1", "f@2")).expect("a comparison");
        assert_eq!((found.first, found.second, found.confidence), (1, 2, 0.95));
        let change = found.events[0].change.expect("a change");
        assert!(change.is_found() && (change.low, change.high) == (0.1, 0.3));
        assert_eq!(found.events[1].change, None);
        for (first, second) in [
            ("f@1", "f@1"),
            ("f", "f@2"),
            ("f@1", "g@2"),
            ("f@1", "f"),
            ("f@1", "f@1 with memory_mb=256"),
            ("f@1", "f@2 with memory_mb=256"),
        ] {
            assert_eq!(
                comparison_of("f", &stored(first, second)),
                None,
                "{first} {second}"
            );
        }
    }

    #[test]
    fn what_is_set_beside_the_history_says_nothing_of_a_version() {
        for recorded in [
            json!({"title": "recorded", "verdict": null, "from_history": true}),
            // Earlier versions of the lab judged it.
            json!({"title": "recorded", "verdict": "slower"}),
        ] {
            let mut replay = stored("f@1", "f@2");
            replay.result["replayed"] = json!({"arrivals": 30});
            replay.result["benchmarks"] = json!([{"title": "replayed"}, recorded]);
            let found = comparison_of("f", &replay).expect("a comparison");
            let names: Vec<&str> = found.events.iter().map(|one| one.name.as_str()).collect();
            assert_eq!(names, ["replayed"], "{recorded}");
        }
    }

    #[test]
    fn each_version_of_a_part_has_a_point() {
        let runs = (0..100).map(|us| (1, 100 + us)).chain([(2, 7)]).collect();
        let points = points_of(Timestamp::UNIX_EPOCH, runs);
        let seen: Vec<_> = points
            .iter()
            .map(|point| (point.version, point.runs, point.median_us, point.p99_us))
            .collect();
        assert_eq!(seen, [(1, 100, 150, Some(198)), (2, 1, 7, None)]);
    }
}
