//! How much to measure.

/// A whole run, or a quick one that only shows that everything works.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Whether it is a quick one.
    pub quick: bool,
}

impl Scale {
    /// One of two counts.
    pub fn pick<T>(self, whole: T, quick: T) -> T {
        if self.quick { quick } else { whole }
    }
}
