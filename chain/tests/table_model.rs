//! The route table against a model, in one thread and under load.
#![cfg(not(loom))]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use hearth_chain::routes::{MAX_SEATS, Plan, RouteError, RouteTable, RouteView, Seat};
use hearth_chain::{Instance, Kind, Member, Table};
use proptest::prelude::*;

const MEMBERS: u8 = 5;

fn view(table: &RouteTable) -> RouteView {
    RouteView::attach(table.for_members().expect("a descriptor")).expect("the table")
}

/// Routes without the gateway, and calls.
fn plans() -> impl Strategy<Value = Plan> {
    let route = prop::collection::vec((1..=MEMBERS).prop_map(Member), 1..9);
    let call = (
        (1..=MEMBERS).prop_map(Member),
        (1..=MEMBERS).prop_map(Member),
    );
    let (routes, calls) = (
        prop::collection::vec(route, 0..5),
        prop::collection::vec(call, 0..5),
    );
    (routes, calls).prop_map(|(routes, calls)| Plan::new(MEMBERS, &routes, &calls).expect("a plan"))
}

#[derive(Debug, Clone)]
enum Step {
    Publish(Plan),
    Begin,
    End(prop::sample::Index),
    Seat(u8, Seat),
    Unseat(u8, u16),
}

fn steps() -> impl Strategy<Value = Step> {
    let seat = |(instance, epoch, capacity)| Seat {
        instance: Instance(instance),
        epoch,
        capacity,
    };
    prop_oneof![
        2 => plans().prop_map(Step::Publish),
        3 => Just(Step::Begin),
        3 => any::<prop::sample::Index>().prop_map(Step::End),
        2 => (1..3_u8, (1..6_u16, any::<u16>(), any::<u16>()).prop_map(seat))
            .prop_map(|(member, seat)| Step::Seat(member, seat)),
        1 => (1..3_u8, 1..6_u16).prop_map(|(member, instance)| Step::Unseat(member, instance)),
    ]
}

/// Everything that a table says is what the plan says.
fn agrees(view: &RouteView, table: Table, plan: &Plan) -> Result<(), TestCaseError> {
    for route in 0..6_u8 {
        let nodes = plan.routes().get(usize::from(route));
        for hop in 0..10_u8 {
            let found = view.hop(table, route, hop);
            let wanted = match nodes {
                Some(nodes) if usize::from(hop) <= nodes.len() => {
                    Ok(nodes.get(usize::from(hop)).copied())
                }
                _ => Err(RouteError::NoHop { route, hop }),
            };
            prop_assert_eq!(found, wanted);
        }
    }
    for kind in Kind::ALL {
        for (from, to) in
            (0..=MEMBERS + 1).flat_map(|from| (0..=MEMBERS + 1).map(move |to| (from, to)))
        {
            let (from, to) = (Member(from), Member(to));
            let found = view.allows(table, from, to, kind);
            prop_assert_eq!(
                found,
                Ok(plan.allows(from, to, kind)),
                "{:?} {:?} {:?}",
                kind,
                from,
                to
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each request that runs sees the routes that it began with, whatever was published since.
    #[test]
    fn a_request_keeps_the_routes_it_began_with(steps in prop::collection::vec(steps(), 1..40)) {
        let table = RouteTable::create().expect("a table");
        let view = view(&table);
        let mut current = Plan::new(MEMBERS, &[], &[]).expect("a plan");
        table.publish(&current).expect("nobody follows it");
        let mut running: Vec<(hearth_chain::routes::Pin<'_>, Plan)> = Vec::new();
        let mut seats: BTreeMap<u8, Vec<Seat>> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Publish(plan) => {
                    let active = table.pin().table();
                    let older = running.iter().filter(|(pin, _)| pin.table() != active).count();
                    match table.publish(&plan) {
                        Ok(published) => {
                            prop_assert!(older == 0 && published != active);
                            current = plan;
                        }
                        Err(busy) => prop_assert_eq!(busy.followers as usize, older),
                    }
                }
                Step::Begin => running.push((table.pin(), current.clone())),
                Step::End(index) if !running.is_empty() => {
                    running.swap_remove(index.index(running.len()));
                }
                Step::End(_) => {}
                Step::Seat(member, seat) => {
                    prop_assert!(table.seat(Member(member), seat));
                    let seats = seats.entry(member).or_default();
                    match seats.iter_mut().find(|found| found.instance == seat.instance) {
                        Some(found) => *found = seat,
                        None => seats.push(seat),
                    }
                }
                Step::Unseat(member, instance) => {
                    let seats = seats.entry(member).or_default();
                    let at = seats.iter().position(|seat| seat.instance.0 == instance);
                    prop_assert_eq!(table.unseat(Member(member), Instance(instance)), at.is_some());
                    at.map(|at| seats.swap_remove(at));
                }
            }
            for (pin, plan) in &running {
                agrees(&view, pin.table(), plan)?;
            }
            for (member, seats) in &seats {
                prop_assert_eq!(&view.seats(Member(*member)).collect::<Vec<_>>(), seats);
            }
        }
    }
}

#[test]
fn a_member_has_so_many_instances_and_no_more() {
    let table = RouteTable::create().expect("a table");
    let seat = |instance| Seat {
        instance: Instance(instance),
        epoch: 0,
        capacity: 1,
    };
    for instance in 0..MAX_SEATS as u16 {
        assert!(table.seat(Member(255), seat(instance)));
    }
    assert!(!table.seat(Member(255), seat(1000)), "it is full");
    assert!(
        table.seat(
            Member(255),
            Seat {
                capacity: 9,
                ..seat(3)
            }
        ),
        "a change has room"
    );
    assert!(table.unseat(Member(255), Instance(0)) && table.seat(Member(255), seat(1000)));
    assert_eq!(table.seats(Member(255)).count(), MAX_SEATS);
    assert_eq!(table.seats(Member(254)).count(), 0);
}

/// Routes that change as fast as they can under requests that walk them: each request walks one version from its first hop to its
/// last. Both versions have four hops, so a mix would go unnoticed by its length.
#[test]
fn a_change_under_load_mixes_no_routes() {
    let versions = [[1, 2, 1, 2], [3, 4, 3, 4]].map(|nodes| nodes.map(Member).to_vec());
    let table = RouteTable::create().expect("a table");
    let publish = |version: usize| {
        let plan = Plan::new(MEMBERS, &[versions[version % 2].clone()], &[]).expect("a plan");
        table.publish(&plan)
    };
    publish(0).expect("nobody follows it");
    let stop = AtomicBool::new(false);
    let (walked, published) = std::thread::scope(|scope| {
        let walkers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let view = view(&table);
                    let mut walked = [0_u32; 2];
                    while !stop.load(Ordering::Relaxed) {
                        let pin = table.pin();
                        let nodes: Vec<Member> = (0..=4)
                            .map_while(|hop| view.hop(pin.table(), 0, hop).expect("not lost"))
                            .collect();
                        let version = versions.iter().position(|version| *version == nodes);
                        walked[version.expect("one of the versions")] += 1;
                    }
                    walked
                })
            })
            .collect();
        let mut published = 0;
        for version in 1..4_000 {
            published += usize::from(publish(version).is_ok());
            if version % 16 == 0 {
                std::thread::yield_now();
            }
        }
        stop.store(true, Ordering::Relaxed);
        let walked = walkers
            .into_iter()
            .map(|walker| walker.join().expect("no panic"));
        (
            walked
                .reduce(|a, b| [a[0] + b[0], a[1] + b[1]])
                .expect("some"),
            published,
        )
    });
    assert!(
        published > 1 && walked.iter().sum::<u32>() > 0,
        "{published}, {walked:?}"
    );
}

/// A request that was given up looks a route up while its table is written: it is told, and gets neither version's mixture.
#[test]
fn who_follows_a_retired_table_gets_a_whole_route_or_an_error() {
    let table = RouteTable::create().expect("a table");
    let view = view(&table);
    let plans = [1, 2].map(|node| {
        let routes = vec![vec![Member(node); 200]; 64];
        Plan::new(MEMBERS, &routes, &[]).expect("a plan")
    });
    for plan in &plans {
        table.publish(plan).expect("nobody follows it");
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut version = 0;
            while !stop.load(Ordering::Relaxed) {
                version += 1;
                // Both tables in turn, with both plans in turn.
                table.publish(&plans[version / 2 % 2]).expect("nobody pins");
            }
        });
        for _ in 0..200_000 {
            match view.hop(Table::A, 63, 199) {
                Ok(Some(Member(1 | 2))) | Err(RouteError::Retired) => {}
                other => panic!("{other:?}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
