//! Units and properties of the choice.

use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;

fn costs() -> StartCosts {
    StartCosts {
        fork: Duration::from_millis(1),
        restore: Duration::from_millis(15),
        boot: Duration::from_millis(80),
    }
}

fn function(frequency: f64) -> Kept {
    Kept {
        idle: 0,
        live: 0,
        instance_bytes: MIB,
        template: Some(14 * MIB),
        image: None,
        restorable: false,
        costs: costs(),
        frequency,
        mark: 0.0,
    }
}

#[test]
fn nothing_goes_without_need() {
    assert!(KeepPolicy::default().choose(&[function(1.0)], 0).is_empty());
}

#[test]
fn the_rarely_called_the_large_and_the_cheap_go_first() {
    let first = |a: Kept, b: Kept| KeepPolicy::default().choose(&[a, b], 1)[0].0;
    assert_eq!(first(function(5.0), function(1.0)), 1);
    let large = Kept {
        template: Some(200 * MIB),
        ..function(1.0)
    };
    assert_eq!(first(function(1.0), large), 1);
    let restorable = Kept {
        restorable: true,
        ..function(1.0)
    };
    assert_eq!(first(function(1.0), restorable), 1);
}

#[test]
fn a_function_goes_down_tier_by_tier() {
    let one = Kept {
        idle: 2,
        live: 2,
        image: Some(10 * MIB),
        restorable: true,
        ..function(1.0)
    };
    let chosen = KeepPolicy::default().choose(&[one], u64::MAX);
    let tiers: Vec<KeptTier> = chosen.into_iter().map(|(_, tier)| tier).collect();
    use KeptTier::{Image, Instance, Template};
    assert_eq!(tiers, [Instance, Instance, Template, Image]);
}

#[test]
fn images_go_after_everybodys_templates() {
    let asleep = Kept {
        template: None,
        image: Some(10 * MIB),
        restorable: true,
        ..function(0.001)
    };
    let popular = Kept {
        image: Some(10 * MIB),
        restorable: true,
        ..function(1e6)
    };
    let chosen = KeepPolicy::default().choose(&[asleep, popular], u64::MAX);
    assert_eq!(
        chosen,
        [
            (1, KeptTier::Template),
            (0, KeptTier::Image),
            (1, KeptTier::Image)
        ]
    );
}

#[test]
fn spare_instances_go_before_the_last_one() {
    let many = Kept {
        idle: 4,
        live: 4,
        template: None,
        ..function(8.0)
    };
    let one = Kept {
        idle: 1,
        live: 1,
        template: None,
        ..function(4.0)
    };
    let chosen = KeepPolicy::default().choose(&[many, one], 2 * MIB);
    assert_eq!(chosen, [(0, KeptTier::Instance), (0, KeptTier::Instance)]);
}

#[test]
fn what_was_once_popular_sinks() {
    let mut evictor = KeepPolicy::default();
    let old = function(10.0);
    let mut rounds = 0;
    // New functions come, are called once and go, until the old favourite's turn has come.
    loop {
        let new = Kept {
            mark: evictor.clock(),
            ..function(1.0)
        };
        if evictor.choose(&[old, new], 1)[0].0 == 0 {
            break;
        }
        rounds += 1;
        assert!(rounds < 100, "it stays for ever");
    }
    assert!(rounds > 1, "it stays for a while");
}

fn any_kept() -> impl Strategy<Value = Kept> {
    let size = 0..64 * MIB;
    (
        (0_u32..5, 0_u32..5, size.clone()),
        prop::option::of(size.clone()),
        prop::option::of(size),
        any::<bool>(),
        0.0_f64..1e6,
        0.0_f64..10.0,
    )
        .prop_map(
            |((idle, busy, instance_bytes), template, image, stays, frequency, mark)| Kept {
                idle,
                live: idle + busy,
                instance_bytes,
                // Who asks leaves out what has to stay: a template that busy instances need.
                template: template.filter(|_| busy == 0 && !stays),
                image: image.filter(|_| busy == 0 && !stays),
                restorable: image.is_some(),
                costs: costs(),
                frequency,
                mark,
            },
        )
}

proptest! {
    /// The excess is freed whenever it can be; nothing goes that may not, nothing twice, nothing out of order, and no
    /// more than is needed; and the clock never runs backwards.
    #[test]
    fn the_choice_is_right(kept in prop::collection::vec(any_kept(), 0..12), excess in 0_u64..2048 * MIB) {
        let mut evictor = KeepPolicy::default();
        let chosen = evictor.choose(&kept, excess);
        prop_assert!(evictor.clock() >= 0.0);
        let bytes = |&(function, tier): &(usize, KeptTier)| match tier {
            KeptTier::Instance => kept[function].instance_bytes,
            KeptTier::Template => kept[function].template.expect("it may go"),
            KeptTier::Image => kept[function].image.expect("it may go"),
        };
        let freed: u64 = chosen.iter().map(bytes).sum();
        let all: u64 = kept.iter().map(|kept| {
            u64::from(kept.idle) * kept.instance_bytes + kept.template.unwrap_or(0) + kept.image.unwrap_or(0)
        }).sum();
        prop_assert!(freed >= excess.min(all), "the budget is met when it can be");
        if let Some(last) = chosen.last() {
            prop_assert!(freed - bytes(last) < excess, "and no more goes than is needed");
        }
        let mut left = kept.clone();
        for (function, tier) in chosen {
            let left = &mut left[function];
            match tier {
                KeptTier::Instance => {
                    prop_assert!(left.idle > 0);
                    left.idle -= 1;
                }
                KeptTier::Template => {
                    prop_assert!(left.idle == 0 && left.template.is_some());
                    left.template = None;
                }
                KeptTier::Image => {
                    prop_assert!(left.idle == 0 && left.template.is_none() && left.image.is_some());
                    left.image = None;
                }
            }
        }
    }
}
