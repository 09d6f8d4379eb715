//! The waterfall of a chain's request: a bar for each stay at a member, on one time line.

use crate::format;

/// Units the time line is wide in its own coordinates.
pub const WIDTH: u64 = 1_000;
/// A bar is at least this wide, so that it can be seen.
const MIN_WIDTH: u64 = 3;

/// One stay at a member, in µs after the request was admitted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stay {
    /// Name of the member.
    pub member: String,
    /// Number of the instance.
    pub instance: u16,
    /// Whether another member called it.
    pub is_call: bool,
    /// When it had the payload.
    pub entered: u64,
    /// When it passed it on; none if it never did.
    pub left: Option<u64>,
}

/// A stay as it is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    /// The stay.
    pub stay: Stay,
    /// Left edge.
    pub x: u64,
    /// Width.
    pub width: u64,
    /// When it began, formatted.
    pub began: String,
    /// How long it took, formatted; `–` if it never ended.
    pub duration: String,
}

/// A drawn waterfall.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waterfall {
    /// In the order in which members were reached.
    pub bars: Vec<Bar>,
    /// Total, formatted.
    pub total: String,
}

impl Waterfall {
    /// Lays out the stays of a request that took `total` µs.
    #[must_use]
    pub fn new(stays: Vec<Stay>, total: u64) -> Self {
        let ends = stays.iter().map(|stay| stay.left.unwrap_or(stay.entered));
        let whole = ends.max().unwrap_or_default().max(total).max(1);
        // What members wrote is not trusted to lie on the line.
        let scaled = |us: u64| {
            let us = us.min(whole);
            (u128::from(us) * u128::from(WIDTH) / u128::from(whole)) as u64
        };
        let bar = |stay: Stay| {
            let x = scaled(stay.entered).min(WIDTH - MIN_WIDTH);
            // What was never left goes on to the end.
            let end = scaled(stay.left.unwrap_or(whole).max(stay.entered));
            Bar {
                x,
                width: end.saturating_sub(x).max(MIN_WIDTH),
                began: format::duration_us(stay.entered),
                duration: match stay.left {
                    Some(left) => format::duration_us(left.saturating_sub(stay.entered)),
                    None => "–".to_owned(),
                },
                stay,
            }
        };
        Self {
            bars: stays.into_iter().map(bar).collect(),
            total: format::duration_us(total),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stay(entered: u64, left: Option<u64>) -> Stay {
        Stay {
            entered,
            left,
            ..Stay::default()
        }
    }

    #[test]
    fn bars_follow_the_time_and_stay_on_the_line() {
        let stays = vec![
            stay(0, Some(500)),
            stay(500, Some(500)),
            stay(600, None),
            stay(u64::MAX, Some(1)),
        ];
        let waterfall = Waterfall::new(stays[..3].to_vec(), 1000);
        let places: Vec<_> = waterfall
            .bars
            .iter()
            .map(|bar| (bar.x, bar.width))
            .collect();
        assert_eq!(places, [(0, 500), (500, MIN_WIDTH), (600, 400)]);
        assert_eq!(waterfall.bars[2].duration, "–");
        assert_eq!(waterfall.total, "1.00 ms");
        for bar in Waterfall::new(stays, 1).bars {
            assert!(bar.x + bar.width <= WIDTH, "{bar:?}");
        }
        assert!(Waterfall::new(Vec::new(), 0).bars.is_empty());
    }
}
