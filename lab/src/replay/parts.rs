//! Cuts traffic into parts, each of which gets copies of its own: how fast the same code is depends on where its process's memory came to
//! lie, and no number of arrivals at the same copies takes that away.

use std::ops::Range;

/// Parts of most replays: as many as ElastiBench makes calls, and enough for an interval at 99 %.
const PARTS: usize = 15;
/// Most parts.
const PARTS_MAX: usize = 45;
/// Arrivals of a part where there are more parts than [`PARTS`]: with more, its median gains less than by another part.
const ARRIVALS: usize = 20;

/// The numbers of each part's arrivals, of which there is at least one.
pub fn parts(arrivals: usize) -> Vec<Range<usize>> {
    let count = (arrivals / ARRIVALS).clamp(PARTS, PARTS_MAX).min(arrivals);
    let from = |part: usize| part * arrivals / count;
    (0..count).map(|part| from(part)..from(part + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_all_arrivals_and_are_as_many_as_these_allow() {
        for (arrivals, count) in [
            (0, 0),
            (1, 1),
            (14, 14),
            (15, 15),
            (319, 15),
            (320, 16),
            (50_000, 45),
        ] {
            let parts = parts(arrivals);
            assert_eq!(parts.len(), count, "{arrivals}");
            let all: Vec<usize> = parts.iter().flat_map(Clone::clone).collect();
            assert_eq!(all, (0..arrivals).collect::<Vec<usize>>());
            assert!(parts.iter().all(|part| !part.is_empty()));
        }
    }
}
