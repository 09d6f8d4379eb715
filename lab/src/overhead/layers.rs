//! One invocation's time, divided among the layers.

use serde::{Deserialize, Serialize};

/// How many layers there are.
pub const LAYERS: usize = 4;

/// The layers from the inside out: in the function, at the worker, in the server, at the client. Each one's time includes those before it;
/// what it has of its own is the difference.
pub const NAMES: [&str; LAYERS] = ["function", "worker", "server", "client"];

/// The same for people.
pub const TITLES: [&str; LAYERS] = [
    "In the function",
    "At the worker",
    "In the server",
    "At the client",
];

/// Stages of an invocation as the server's history has them, in whole µs. They do not overlap, and their sum is at most `total`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stages {
    /// Waiting for an instance.
    pub queue: u64,
    /// Starting one; 0 when warm.
    pub start: u64,
    /// From the server to the handler.
    pub send: u64,
    /// The handler.
    pub run: u64,
    /// From the handler to the server.
    pub recv: u64,
    /// From admission to the end of the response.
    pub total: u64,
}

/// What each layer has of its own, in ns, from the inside out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layers {
    /// Their sum is the client's time.
    pub own_ns: [u64; LAYERS],
    /// Whether a layer was longer than the one around it, and was cut to that: the server's and the client's clocks tick differently, and
    /// a handler's stamps can be wrong.
    pub was_cut: bool,
}

impl Layers {
    /// Of an invocation that took so long at the client, in ns from sending to the last byte.
    pub fn of(stages: &Stages, client_ns: u64) -> Self {
        let ns = |us: u64| us.saturating_mul(1_000);
        let worker = [stages.start, stages.send, stages.run, stages.recv]
            .into_iter()
            .fold(0, u64::saturating_add);
        // From the outside in, so that the client's time is what is divided.
        let mut through_ns = [ns(stages.run), ns(worker), ns(stages.total), client_ns];
        let mut was_cut = false;
        for layer in (0..LAYERS - 1).rev() {
            was_cut |= through_ns[layer] > through_ns[layer + 1];
            through_ns[layer] = through_ns[layer].min(through_ns[layer + 1]);
        }
        let mut own_ns = through_ns;
        for layer in 1..LAYERS {
            own_ns[layer] -= through_ns[layer - 1];
        }
        Self { own_ns, was_cut }
    }

    /// Each layer with those inside it, in ns.
    pub fn through_ns(&self) -> [u64; LAYERS] {
        let mut sum = 0;
        self.own_ns.map(|own| {
            sum += own;
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WARM: Stages = Stages {
        queue: 1,
        start: 0,
        send: 10,
        run: 5,
        recv: 7,
        total: 30,
    };

    #[test]
    fn layers_are_the_differences_of_the_stages() {
        let layers = Layers::of(&WARM, 80_500);
        assert_eq!(layers.own_ns, [5_000, 17_000, 8_000, 50_500]);
        assert_eq!(layers.through_ns(), [5_000, 22_000, 30_000, 80_500]);
        assert!(!layers.was_cut);
        // A cold start is the worker's; waiting for it is the server's.
        let cold = Stages {
            queue: 100,
            start: 900,
            total: 1_100,
            ..WARM
        };
        let layers = Layers::of(&cold, 1_200_000);
        assert_eq!(layers.own_ns, [5_000, 917_000, 178_000, 100_000]);
    }

    #[test]
    fn a_layer_is_cut_to_the_one_around_it() {
        let layers = Layers::of(&WARM, 20_000);
        assert_eq!(layers.own_ns, [5_000, 15_000, 0, 0]);
        assert!(layers.was_cut);
        let layers = Layers::of(&WARM, 0);
        assert_eq!((layers.own_ns, layers.was_cut), ([0; LAYERS], true));
    }

    proptest! {
        #[test]
        fn layers_add_up_to_the_clients_time(us in any::<[u64; 6]>(), small in any::<[u16; 6]>(), client_ns in any::<u64>(), near in any::<u32>()) {
            for ([queue, start, send, run, recv, total], client_ns) in
                [(us, client_ns), (small.map(u64::from), u64::from(near))]
            {
                let stages = Stages { queue, start, send, run, recv, total };
                let layers = Layers::of(&stages, client_ns);
                // None is negative by its type: a difference that were would panic.
                prop_assert_eq!(layers.own_ns.iter().sum::<u64>(), client_ns);
                prop_assert_eq!(layers.through_ns()[LAYERS - 1], client_ns);
                prop_assert!(layers.through_ns().is_sorted());
            }
        }
    }
}
