//! The pauses and bursts of a sub-experiment.

use crate::load::{Burst, Round};

use super::experiment::SubExperiment;

/// The pause before each round in ms, with STeLLAR's own formulas and roundings. The seed is of the stochastic ones.
pub fn pauses(experiment: &SubExperiment, rounds: usize, seed: u64) -> Vec<u64> {
    let mean = experiment.iat_seconds;
    let mut random = fastrand::Rng::with_seed(seed);
    let pause = |round: usize| match experiment.iat_type.as_str() {
        // Whole seconds.
        "deterministic" => mean.trunc() * 1e3,
        // Grows by a second each round.
        "step" => (round as f64 + 1.0).min(mean).trunc() * 1e3,
        // A shifted exponential distribution, in whole ms. It shortens pauses below a second, and never lengthens one of a second.
        _ => ((mean - (1.0 - random.f64()).ln() * mean.ln()) * 1e3).trunc(),
    };
    // A negative one is none, as in Go's Sleep; so is that of no seconds, whose logarithm is infinite.
    (0..rounds)
        .map(pause)
        .map(|ms| ms.max(0.0) as u64)
        .collect()
}

/// About how long all pauses take together, in seconds.
pub fn seconds(experiment: &SubExperiment) -> f64 {
    let rounds = experiment.bursts.div_ceil(experiment.parallelism.max(1));
    let mean = experiment.iat_seconds;
    match experiment.iat_type.as_str() {
        "stochastic" if mean > 0.0 => (mean + mean.ln()).max(0.0) * rounds as f64,
        _ => pauses(experiment, rounds, 1).iter().sum::<u64>() as f64 / 1e3,
    }
}

/// All rounds. Each endpoint takes a burst in turn, and a round ends after the last of them. Where they are spread, each burst is a round
/// of its own with its share of the pause. `request` gives the request for an endpoint and a service time, each by its number.
pub fn rounds(
    experiment: &SubExperiment,
    endpoints: usize,
    service_times: usize,
    seed: u64,
    request: impl Fn(usize, usize) -> usize,
) -> Vec<Round> {
    let count = experiment.bursts.div_ceil(endpoints);
    let pauses = pauses(experiment, count, seed);
    let mut left = experiment.bursts;
    let round = |(round, pause_ms): (usize, u64)| {
        let size = experiment.burst_sizes[round % experiment.burst_sizes.len()];
        let service_time = round.min(service_times - 1);
        let bursts = (0..endpoints.min(left)).map(|endpoint| Burst {
            request: request(endpoint, service_time),
            size,
        });
        let bursts: Vec<Burst> = bursts.collect();
        left -= bursts.len();
        let round = Round { pause_ms, bursts };
        if experiment.spread {
            spread(round, endpoints)
        } else {
            vec![round]
        }
    };
    pauses.into_iter().enumerate().flat_map(round).collect()
}

/// The round's bursts at even distances over its pause, which has room for as many as there are endpoints.
fn spread(round: Round, endpoints: usize) -> Vec<Round> {
    let at_ms = |burst: usize| round.pause_ms * burst as u64 / endpoints as u64;
    let one = |(burst, it): (usize, Burst)| Round {
        pause_ms: at_ms(burst + 1) - at_ms(burst),
        bursts: vec![it],
    };
    round.bursts.into_iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(iat_type: &str, iat_seconds: f64) -> SubExperiment {
        SubExperiment {
            iat_type: iat_type.to_owned(),
            iat_seconds,
            ..SubExperiment::default()
        }
    }

    #[test]
    fn pauses_have_stellars_roundings() {
        let pauses = |kind: &str, mean: f64| pauses(&experiment(kind, mean), 4, 1);
        assert_eq!(pauses("deterministic", 3.9), [3_000; 4]);
        assert_eq!(pauses("deterministic", 0.5), [0; 4]);
        assert_eq!(pauses("step", 2.5), [1_000, 2_000, 2_000, 2_000]);
        assert_eq!(pauses("stochastic", 1.0), [1_000; 4]);
        assert_eq!(pauses("stochastic", 0.0), [0; 4]);
        assert!(pauses("stochastic", 0.5).iter().all(|ms| *ms <= 500));
    }

    #[test]
    fn stochastic_pauses_have_the_mean_of_the_formula() {
        let (mean, count) = (3.0_f64, 20_000);
        let pauses = pauses(&experiment("stochastic", mean), count, 9);
        assert!(pauses.iter().all(|ms| *ms >= 3_000));
        let found = pauses.iter().sum::<u64>() as f64 / count as f64 / 1e3;
        // The standard error is ln 3 / √20,000, less than 0.01; cutting to ms takes 0.0005.
        assert!((found - (mean + mean.ln())).abs() < 0.04, "{found}");
    }

    #[test]
    fn endpoints_take_bursts_in_turn_and_sizes_change_by_round() {
        let experiment = SubExperiment {
            bursts: 8,
            burst_sizes: vec![1, 100],
            ..experiment("deterministic", 1.0)
        };
        let rounds = rounds(&experiment, 3, 2, 1, |endpoint, time| endpoint * 2 + time);
        let flat: Vec<Vec<(usize, usize)>> = rounds
            .iter()
            .map(|round| {
                round
                    .bursts
                    .iter()
                    .map(|burst| (burst.request, burst.size))
                    .collect()
            })
            .collect();
        assert_eq!(
            flat,
            [
                vec![(0, 1), (2, 1), (4, 1)],
                vec![(1, 100), (3, 100), (5, 100)],
                vec![(1, 1), (3, 1)],
            ]
        );
        assert!(rounds.iter().all(|round| round.pause_ms == 1_000));
    }

    #[test]
    fn bursts_that_are_spread_share_the_pause() {
        let experiment = SubExperiment {
            bursts: 5,
            burst_sizes: vec![1, 2],
            spread: true,
            ..experiment("deterministic", 1.0)
        };
        let rounds = rounds(&experiment, 3, 1, 1, |endpoint, _| endpoint);
        let flat: Vec<(u64, usize, usize)> = rounds
            .iter()
            .map(|round| {
                assert_eq!(round.bursts.len(), 1);
                (
                    round.pause_ms,
                    round.bursts[0].request,
                    round.bursts[0].size,
                )
            })
            .collect();
        // The second round has two of three bursts, at the same distances.
        let expected = [
            (333, 0, 1),
            (333, 1, 1),
            (334, 2, 1),
            (333, 0, 2),
            (333, 1, 2),
        ];
        assert_eq!(flat, expected);
    }
}
