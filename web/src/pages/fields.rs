//! The settings that are numbers, each with its rule, its default and what it does, as the forms show them.

/// A whole-number setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberField {
    /// The API's name for it.
    pub name: &'static str,
    /// What the form calls it.
    pub label: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// Smallest value.
    pub min: u32,
    /// Largest value.
    pub max: u32,
    /// What a function has that names none.
    pub default: u32,
    /// What it does, in one sentence.
    pub effect: &'static str,
}

/// All of them, in the order of the form.
pub const NUMBER_FIELDS: [NumberField; 6] = [
    NumberField {
        name: "memory_mb",
        label: "Memory",
        unit: "MiB",
        min: 32,
        max: 16_384,
        default: 128,
        effect: "An instance that uses more is killed.",
    },
    NumberField {
        name: "timeout_ms",
        label: "Timeout",
        unit: "ms",
        min: 1,
        max: 900_000,
        default: 30_000,
        effect: "A call that runs longer is stopped, along with its instance.",
    },
    NumberField {
        name: "max_concurrency",
        label: "Concurrency",
        unit: "instances",
        min: 1,
        max: 1_000,
        default: 8,
        effect: "Maximum concurrent calls; more wait in a queue.",
    },
    NumberField {
        name: "idle_timeout_s",
        label: "Idle timeout",
        unit: "s",
        min: 1,
        max: 86_400,
        default: 300,
        effect: "Stop an instance after this long without a call.",
    },
    NumberField {
        name: "min_instances",
        label: "Minimum instances",
        unit: "instances",
        min: 0,
        max: 1_000,
        default: 0,
        effect: "Minimum number of instances to keep running.",
    },
    NumberField {
        name: "template_idle_timeout_s",
        label: "Template idle timeout",
        unit: "s",
        min: 0,
        max: 2_592_000,
        default: 3_600,
        effect: "Release the template after this long without a call; the next call restores it. 0: never.",
    },
];

impl NumberField {
    pub(super) fn is_default(&self, value: &str) -> bool {
        value.trim() == self.default.to_string()
    }

    /// `32 to 16,384`.
    pub(super) fn rule(&self) -> String {
        let number = |value: u32| crate::format::count(value.into());
        format!("{} to {}", number(self.min), number(self.max))
    }

    /// The default with its thousands set apart, and of a time what it is in the unit one thinks in: `30,000 (30 s)`.
    pub(super) fn default_in_words(&self) -> String {
        let number = crate::format::count(self.default.into());
        match (self.unit, self.default) {
            ("ms", value) if value >= 1_000 => format!("{number} ({} s)", value / 1_000),
            ("s", value) if value >= 3_600 => format!("{number} ({} h)", value / 3_600),
            ("s", value) if value >= 60 => format!("{number} ({} min)", value / 60),
            _ => number,
        }
    }
}
