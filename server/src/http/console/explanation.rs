//! An invocation's explanation as the console shows it.

use hearth_web::format::{count, duration_us, percent, plural, time_of_day};
use hearth_web::pages::{CauseRow, ExplanationView, RanRow};

use crate::model::{Cause, CauseKind, Explanation, InvocationCounters, Meanwhile, TailWindow};
use crate::tail;

/// The view of an explanation.
pub fn view(explained: &Explanation) -> ExplanationView {
    let missing = format!(
        "The host\u{2019}s counters are kept in memory for a quarter of an hour or more, and since the server started. They reach back to {} UTC.",
        time_of_day(explained.window_since)
    );
    ExplanationView {
        summary: explained.summary.clone(),
        causes: explained.causes.iter().map(cause).collect(),
        instance: explained
            .counters
            .as_ref()
            .map(instance)
            .unwrap_or_default(),
        instance_note: "None. Requests that the instance has for less than 50 µs are not counted (programs that run as Lambda binaries: 300 µs), nor are \
             those without an answer, and those from before counters were kept.",
        host: explained.window.as_ref().map(host).unwrap_or_default(),
        host_note: match &explained.window {
            Some(window) => format!(
                "Between the samples around it, {} to {} UTC.",
                time_of_day(window.from),
                time_of_day(window.to)
            ),
            None => missing,
        },
        ran: ran(&explained.meanwhile),
        remarks: remarks(&explained.meanwhile),
    }
}

fn cause(cause: &Cause) -> CauseRow {
    let dash = || "–".to_owned();
    CauseRow {
        name: tail::name(cause.kind),
        figure: cause.figure.clone(),
        time: cause.us.map_or_else(dash, duration_us),
        share: cause.share.map_or_else(dash, percent),
        scope: match (cause.kind, cause.is_own) {
            (CauseKind::PageFaults, _) => "in this invocation; time estimated",
            (_, true) => "in this invocation",
            (CauseKind::Throttling, false) => "in its sandbox, at most",
            (_, false) => "on the host, on average",
        },
    }
}

fn instance(counters: &InvocationCounters) -> Vec<(&'static str, String)> {
    let number = |value: u32| count(value.into());
    let mut figures = vec![
        ("Page faults", number(counters.minor_faults)),
        ("From a disk", number(counters.major_faults)),
    ];
    // Unknown of a program with a process of its own.
    let stops = [
        ("Preempted", counters.preemptions.map(number)),
        ("Collections", counters.pauses.map(number)),
        ("Collector", counters.paused_us.map(duration_us)),
    ];
    figures.extend(
        stops
            .into_iter()
            .filter_map(|(name, figure)| Some((name, figure?))),
    );
    figures
}

fn host(window: &TailWindow) -> Vec<(&'static str, String)> {
    let pressure = |share: Option<f64>| share.map_or_else(|| "unknown".to_owned(), percent);
    let throttled = match window.throttled_periods {
        0 => "no".to_owned(),
        periods => format!(
            "{}, {}",
            plural(periods, "period"),
            duration_us(window.throttled_us)
        ),
    };
    vec![
        ("Processors busy", percent(window.busy)),
        ("Steal", percent(window.steal)),
        ("Waiting for a processor", pressure(window.cpu_pressure)),
        ("Waiting for memory", pressure(window.memory_pressure)),
        ("Waiting for a disk", pressure(window.io_pressure)),
        ("Function throttled", throttled),
    ]
}

fn ran(meanwhile: &Meanwhile) -> Vec<RanRow> {
    let row = |ran: &crate::model::RanMeanwhile| RanRow {
        function: ran.function.clone(),
        count: ran.count,
        cold: ran.cold,
        overlap: duration_us(ran.overlap_us),
    };
    meanwhile.invocations.iter().map(row).collect()
}

fn remarks(meanwhile: &Meanwhile) -> Vec<String> {
    let mut remarks = Vec::new();
    if meanwhile.unnamed > 0 {
        let others = plural(meanwhile.unnamed, "invocation");
        remarks.push(format!("{others} of further functions."));
    }
    for deployed in &meanwhile.deployments {
        remarks.push(format!(
            "Version {} of {} was built and booted: stored {} UTC.",
            deployed.version,
            deployed.function,
            time_of_day(deployed.at)
        ));
    }
    for experiment in &meanwhile.experiments {
        let (id, title) = (experiment.id, &experiment.title);
        remarks.push(format!("Experiment {id} of the lab ran: {title}."));
    }
    for took in &meanwhile.slow_writes_us {
        let took = duration_us(*took);
        remarks.push(format!(
            "A write of the history took {took}: a checkpoint of the database, or a slow disk."
        ));
    }
    remarks
}
