//! Which controllers of the policy are on: all of them, except in a benchmark that measures what one is worth.

/// One switch per controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Controllers {
    /// [`burst`](super::burst): fewer starts than requests that wait, if more would not pay. Off: one start each.
    pub burst: bool,
    /// [`periodic`](super::periodic): an instance is ready ahead of an expected call.
    pub periodic: bool,
}

impl Default for Controllers {
    fn default() -> Self {
        Self {
            burst: true,
            periodic: true,
        }
    }
}

impl Controllers {
    /// All but those named, separated by commas; empty for all.
    ///
    /// # Errors
    /// The unknown controller's name.
    pub fn without(names: &str) -> Result<Self, String> {
        let mut all = Self::default();
        for name in names.split(',').filter(|name| !name.is_empty()) {
            let switch = match name {
                "burst" => &mut all.burst,
                "periodic" => &mut all.periodic,
                _ => {
                    return Err(format!(
                        "no controller {name:?}; expected burst or periodic"
                    ));
                }
            };
            *switch = false;
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_named_are_off() {
        let both = Controllers::without("burst,periodic").expect("both");
        assert!(!both.burst && !both.periodic);
        let one = Controllers::without("burst").expect("one of them");
        assert!(!one.burst && one.periodic);
        assert_eq!(Controllers::without(""), Ok(Controllers::default()));
        let error = Controllers::without("burst,bursts").expect_err("there is no such");
        assert!(error.contains("\"bursts\""), "{error}");
    }
}
