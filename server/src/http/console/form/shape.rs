//! How large each form may be.

use hearth_lab::stellar::experiment::TEXT_MAX;

use crate::http::spec::{MAX_CODE_BYTES, MAX_SOURCE_BYTES};

/// Limits of a form, enforced while it is read, to protect the server's memory.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Bytes of the whole body. What is left of it beside the largest file bounds all text, which is held in memory.
    pub(super) total: usize,
    /// Bytes of one text field.
    pub(super) text: usize,
    /// Fields.
    pub(super) fields: usize,
    /// Bytes of a file; 0 where the form has none.
    pub(super) file: usize,
}

/// A name, a password, a code, and where to go next.
pub const LOGIN: Shape = Shape {
    total: 16 << 10,
    text: 4 << 10,
    fields: 16,
    file: 0,
};
/// Settings with the whole environment, twice: in one-letter variables, of which each row is a name and a value.
pub(super) const SETTINGS: Shape = Shape {
    total: 256 << 10,
    text: 64 << 10,
    fields: 4096,
    file: 0,
};
/// An event of 6 MiB with the carriage returns that browsers put in, or a request.
pub(super) const EVENT: Shape = Shape {
    total: 9 << 20,
    text: 8 << 20,
    fields: 64,
    file: 0,
};
/// An experiment. A trace that is too large for one, by up to as much again, is refused at its field, where it stays.
pub(super) const EXPERIMENT: Shape = Shape {
    total: 2 * TEXT_MAX + (256 << 10),
    text: 2 * TEXT_MAX,
    fields: 128,
    file: 0,
};
/// Settings, and code as text or as a file.
pub(super) const CODE: Shape = Shape {
    total: MAX_CODE_BYTES + (16 << 20),
    text: MAX_SOURCE_BYTES,
    fields: 4096,
    file: MAX_CODE_BYTES,
};

/// The form that a handler takes, as a type.
pub trait Kind {
    /// What it may have.
    const SHAPE: Shape;
}

/// [`SETTINGS`].
#[derive(Debug)]
pub struct Settings;
/// [`EVENT`].
#[derive(Debug)]
pub struct Event;
/// [`EXPERIMENT`].
#[derive(Debug)]
pub struct Experiment;
/// [`CODE`].
#[derive(Debug)]
pub struct CodeFields;

impl Kind for Settings {
    const SHAPE: Shape = SETTINGS;
}
impl Kind for Event {
    const SHAPE: Shape = EVENT;
}
impl Kind for Experiment {
    const SHAPE: Shape = EXPERIMENT;
}
impl Kind for CodeFields {
    const SHAPE: Shape = CODE;
}
