//! Chains, their versions and their history.

use super::*;
use crate::model::chain::{Spec, Trace, TraceHop};

fn chain_named(name: &str) -> Spec {
    serde_json::from_value(serde_json::json!({
        "name": name, "members": {"a": {"function": "f"}}, "routes": {"r": ["a"]},
        "pool": {"block_kb": 4, "blocks": 8}, "transport": "auto", "timeout_ms": 1000,
    }))
    .unwrap()
}

#[tokio::test]
async fn versions_of_a_chain_are_counted_and_activated() {
    let Fixture { store, directory } = Fixture::new().await;
    let first = store.create_chain(&chain_named("c")).await.unwrap();
    assert_eq!(first.active.version, 1);
    let taken = store.create_chain(&chain_named("c")).await;
    assert!(matches!(taken, Err(StoreError::ChainExists(name)) if name == "c"));

    let changed = Spec {
        timeout_ms: 7,
        ..chain_named("c")
    };
    assert_eq!(store.next_chain_version(first.id).await.unwrap(), 2);
    let second = store.add_chain_version(first.id, &changed).await.unwrap();
    assert_eq!((second.id, second.active.version), (first.id, 2));
    assert_eq!(second.active.spec, changed);
    let back = store.activate_chain(first.id, 1).await.unwrap();
    assert_eq!(back.active.spec, chain_named("c"));
    assert!(store.activate_chain(first.id, 3).await.is_err());
    assert!(store.activate_chain(first.id + 1, 1).await.is_err());
    assert!(
        store
            .add_chain_version(first.id + 1, &changed)
            .await
            .is_err()
    );
    assert_eq!(store.chains().await.unwrap()[0].active.version, 1);

    assert_eq!(store.next_chain_version(first.id).await.unwrap(), 3);
    let versions = store.chain_versions(first.id).await.unwrap();
    let numbers: Vec<u32> = versions.iter().map(|version| version.version).collect();
    assert_eq!(numbers, [2, 1]);
    drop(directory);
}

#[tokio::test]
async fn a_chains_history_is_its_own_and_goes_with_it() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let function = store.create_function(&spec("same"), "aa", 1).await.unwrap();
    let chain = store.create_chain(&chain_named("same")).await.unwrap();
    assert_eq!(function.id, chain.id, "the ids that could be mixed up");

    let mut record = finished(Status::Succeeded, &["line"]);
    record.chain = Some(Trace {
        route: "r".into(),
        hops: vec![TraceHop {
            member: "a".into(),
            instance: 3,
            is_call: false,
            entered_us: 10,
            left_us: None,
        }],
    });
    write(store, -chain.id, std::slice::from_ref(&record)).await;
    write(store, function.id, &[finished(Status::Failed, &[])]).await;

    let filter = InvocationFilter::default();
    let found = store
        .invocations(-chain.id, &filter, None, 10)
        .await
        .unwrap();
    assert_eq!(found.items.len(), 1);
    assert_eq!(found.items[0].chain, record.chain);
    let whole = store.invocation(record.id).await.unwrap().unwrap();
    assert_eq!((whole.function.as_str(), whole.logs.len()), ("same", 1));

    store.delete_chain(chain.id).await.unwrap();
    assert!(store.invocation(record.id).await.unwrap().is_none());
    store.sweep().await.unwrap();
    assert_eq!(fixture.count("invocations").await, 1);
    assert_eq!(fixture.count("logs").await, 0);
    assert_eq!(fixture.count("subjects").await, 1);
    // A record that comes too late is passed over.
    write(store, -chain.id, &[record]).await;
    assert_eq!(fixture.count("invocations").await, 1);
    let again = store.create_chain(&chain_named("same")).await.unwrap();
    assert!(again.id > chain.id);
}
