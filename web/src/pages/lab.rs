//! `/lab` and `/lab/{id}`: experiments, how far they are, and what came of them.

use askama::Template;

use super::lab_form::LabForm;
use super::{FieldErrors, Moment};
use crate::chrome::{Badge, Chrome};

/// An experiment in the list.
#[derive(Debug, Clone)]
pub struct ExperimentCard {
    /// Its number.
    pub id: i64,
    /// `Load`, `Tail latency`, `Overhead`, `Duet`, `Replay`, `Suite`, `STeLLAR`.
    pub kind: &'static str,
    /// What it answers.
    pub title: String,
    /// How far it is.
    pub state: Badge,
    /// What came of it, or how far it is, in a line; may be empty.
    pub summary: String,
    /// Who created it.
    pub by: String,
    /// When.
    pub created: Moment,
}

/// The list, which refreshes while something is under way.
#[derive(Debug, Clone, Default)]
pub struct ExperimentCards {
    /// Newest first.
    pub cards: Vec<ExperimentCard>,
    /// Of which experiment on; none on the first page.
    pub before: Option<i64>,
    /// The address of older ones; empty on the last page.
    pub older: String,
    /// Whether an agent is there.
    pub has_agent: bool,
    /// Whether experiments wait.
    pub waits: bool,
    /// Address of this server, for the agent.
    pub server: String,
}

/// `partials/experiments.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/experiments.html")]
pub struct ExperimentsPartial {
    /// The list.
    pub list: ExperimentCards,
}

/// `lab.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "lab.html")]
pub struct LabPage {
    /// The frame.
    pub chrome: Chrome,
    /// The list.
    pub list: ExperimentCards,
    /// The forms.
    pub form: LabForm,
    /// Name and meaning of all factors, and whether one is chosen at first.
    pub factors: Vec<(&'static str, &'static str, bool)>,
    /// Name and meaning of all workloads of the overhead study.
    pub workloads: Vec<(&'static str, &'static str)>,
    /// Names of its runtimes.
    pub runtimes: Vec<&'static str>,
    /// Names of all functions.
    pub functions: Vec<String>,
    /// Tools of suites, each with what it is.
    pub tools: Vec<(&'static str, &'static str)>,
    /// Processors that calls of a suite may have.
    pub processors: usize,
    /// What is wrong with the fields of a load, a duet, a replay or a suite.
    pub errors: FieldErrors,
    /// What is wrong with the form; empty when all is well.
    pub problem: String,
}

/// A table: headings, and rows of as many cells, the first of which names the row.
#[derive(Debug, Clone, Default)]
pub struct ResultTable {
    /// The headings.
    pub headings: Vec<&'static str>,
    /// Name, what it means (may be empty), and the other cells.
    pub rows: Vec<(String, String, Vec<String>)>,
}

/// Latencies so far, drawn in a box of 600 by 100.
#[derive(Debug, Clone, Default)]
pub struct LiveDistribution {
    /// Left, top, width and height of each bar.
    pub bars: Vec<[f32; 4]>,
    /// What they are of: `To the first byte so far, warm-up included: 12 requests`.
    pub caption: String,
    /// How many there are; none is drawn without one.
    pub count: u64,
    /// The shortest and the longest, at the ends of the axis.
    pub ends: [String; 2],
    /// The median.
    pub median: String,
    /// The 99th percentile, if there are enough for one.
    pub p99: String,
}

/// How far an experiment is.
#[derive(Debug, Clone)]
pub struct ExperimentLive {
    /// Its number.
    pub id: i64,
    /// How far it is.
    pub state: Badge,
    /// Whether it is not over, so that this refreshes.
    pub is_open: bool,
    /// Whether it is to be cancelled.
    pub cancelling: bool,
    /// What is being done; may be empty.
    pub what: String,
    /// Steps that are over, and in all.
    pub done: u64,
    /// See `done`.
    pub total: u64,
    /// Time left in words; may be empty.
    pub left: String,
    /// Why it did not come to its end; may be empty.
    pub error: String,
    /// What was measured so far.
    pub measured: ResultTable,
    /// Latencies of what is being measured, as they come.
    pub distribution: LiveDistribution,
}

/// `partials/experiment_live.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/experiment_live.html")]
pub struct ExperimentLivePartial {
    /// How far it is.
    pub live: ExperimentLive,
}

/// A plot of an experiment.
#[derive(Debug, Clone)]
pub struct PlotView {
    /// What it shows.
    pub name: String,
    /// Its address.
    pub address: String,
    /// The same as a `data:` address.
    pub data: String,
    /// Name of its files when it is taken along, without the ending.
    pub file: String,
}

/// A file of an experiment.
#[derive(Debug, Clone)]
pub struct ExperimentFileRow {
    /// Its path.
    pub path: String,
    /// Its address.
    pub address: String,
    /// Its size in words.
    pub size: String,
}

/// `experiment.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "experiment.html")]
pub struct ExperimentPage {
    /// The frame.
    pub chrome: Chrome,
    /// The experiment.
    pub card: ExperimentCard,
    /// How far it is.
    pub live: ExperimentLive,
    /// What came of it.
    pub result: ResultTable,
    /// Sentences about the result.
    pub remarks: Vec<String>,
    /// Plots.
    pub plots: Vec<PlotView>,
    /// Plots that are not shown.
    pub plots_left: usize,
    /// All files.
    pub files: Vec<ExperimentFileRow>,
    /// Experiments that it may be set beside: their numbers and titles.
    pub others: Vec<(i64, String)>,
    /// The configuration, as text.
    pub config: String,
}

/// One of two runs.
#[derive(Debug, Clone)]
pub struct ComparedRun {
    /// The experiment.
    pub card: ExperimentCard,
    /// What came of it.
    pub result: ResultTable,
}

/// A plot of one of them, or why there is none.
#[derive(Debug, Clone)]
pub struct ComparedPlot {
    /// The plot.
    pub plot: Option<PlotView>,
    /// Why there is none.
    pub missing: String,
}

/// `lab_compare.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "lab_compare.html")]
pub struct ExperimentComparePage {
    /// The frame.
    pub chrome: Chrome,
    /// The first and the second.
    pub runs: [ComparedRun; 2],
    /// What both have.
    pub differences: ResultTable,
    /// Why that is nothing.
    pub nothing: &'static str,
    /// Whether two duets agree; empty if they are not two.
    pub agreement: String,
    /// Plots of both, those of the same name beside each other.
    pub plots: Vec<[ComparedPlot; 2]>,
    /// Plots that are not shown.
    pub plots_left: usize,
}
