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
        effect: "An instance that takes more is killed.",
    },
    NumberField {
        name: "timeout_ms",
        label: "Timeout",
        unit: "ms",
        min: 1,
        max: 900_000,
        default: 30_000,
        effect: "A call that runs longer is ended, and its instance with it.",
    },
    NumberField {
        name: "max_concurrency",
        label: "Concurrency",
        unit: "instances",
        min: 1,
        max: 1_000,
        default: 8,
        effect: "At most so many calls run at once; more wait for their turn.",
    },
    NumberField {
        name: "idle_timeout_s",
        label: "Idle timeout",
        unit: "s",
        min: 1,
        max: 86_400,
        default: 300,
        effect: "An instance that was not called for so long is stopped.",
    },
    NumberField {
        name: "min_instances",
        label: "Instances kept ready",
        unit: "instances",
        min: 0,
        max: 1_000,
        default: 0,
        effect: "So many stay, however idle, and answer at once.",
    },
    NumberField {
        name: "template_idle_timeout_s",
        label: "Template idle timeout",
        unit: "s",
        min: 0,
        max: 2_592_000,
        default: 3_600,
        effect: "Not called for so long, the imported code leaves the memory and the next call fetches it back; 0: never.",
    },
];

impl NumberField {
    pub(super) fn is_default(&self, value: &str) -> bool {
        value.trim() == self.default.to_string()
    }

    /// `32 to 16,384`.
    pub(super) fn rule(&self) -> String {
        format!("{} to {}", self.min, self.max)
    }
}
