//! Functions, versions, and what deleting leaves.

use super::*;

#[tokio::test]
async fn versions_are_counted_and_activated() {
    let Fixture { store, directory } = Fixture::new().await;
    let first = store.create_function(&spec("f"), "aa", 10).await.unwrap();
    assert_eq!(first.active.version, 1);
    assert_eq!(store.next_version(first.id).await.unwrap(), 2);

    let changed = FunctionSpec {
        memory_mb: 256,
        ..spec("f")
    };
    let second = store
        .add_version(first.id, &changed, "bb", 20)
        .await
        .unwrap();
    assert_eq!((second.id, second.active.version), (first.id, 2));
    assert_eq!(second.active.spec, changed);
    assert_eq!(second.created_at, first.created_at);
    assert!(second.updated_at >= first.updated_at);

    let back = store.activate(first.id, 1).await.unwrap().unwrap();
    assert_eq!(back.active.version, 1);
    assert_eq!(back.active.code_sha256, "aa");
    assert!(store.activate(first.id, 3).await.unwrap().is_none());
    assert!(store.activate(first.id + 1, 1).await.unwrap().is_none());

    // The next number follows the newest version, not the active one.
    assert_eq!(store.next_version(first.id).await.unwrap(), 3);
    let versions = store.versions(first.id).await.unwrap();
    let numbers: Vec<u32> = versions.iter().map(|version| version.version).collect();
    assert_eq!(numbers, [2, 1]);
    assert_eq!(versions[0].code_bytes, 20);
    assert_eq!(store.code_in_use().await.unwrap(), ["aa", "bb"]);
    drop(directory);
}

#[tokio::test]
async fn names_are_taken_once_and_unknown_functions_are_errors() {
    let Fixture { store, directory } = Fixture::new().await;
    store.create_function(&spec("f"), "aa", 10).await.unwrap();
    let taken = store.create_function(&spec("f"), "bb", 10).await;
    assert!(matches!(taken, Err(StoreError::Exists(name)) if name == "f"));
    let gone = store.add_version(99, &spec("f"), "bb", 10).await;
    assert!(matches!(
        gone,
        Err(StoreError::Sqlx {
            source: sqlx::Error::RowNotFound,
            ..
        })
    ));
    assert!(store.versions(99).await.unwrap().is_empty());
    store.delete_function(99).await.unwrap();
    assert_eq!(store.code_in_use().await.unwrap(), ["aa"]);
    drop(directory);
}

#[tokio::test]
async fn deleting_takes_the_history_too_and_frees_the_name_but_not_the_id() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let doomed = store.create_function(&spec("f"), "aa", 1).await.unwrap().id;
    let other = store.create_function(&spec("g"), "bb", 1).await.unwrap().id;
    let records: Vec<_> = (0..5000)
        .map(|_| finished(Status::Succeeded, &["line"]))
        .collect();
    write(store, doomed, &records).await;
    write(store, other, &records_of(3)).await;
    let row = RollupRow {
        function: doomed,
        minute: 1,
        minutes: 1,
        counts: RollupCounts::default(),
        stages: Default::default(),
        cold: None,
        unserved: None,
    };
    let kept = RollupRow {
        function: other,
        ..row.clone()
    };
    store.insert_rollups(&[row.clone(), kept]).await.unwrap();

    store.delete_function(doomed).await.unwrap();
    assert!(store.invocation(records[0].id).await.unwrap().is_none());
    let again = store.create_function(&spec("f"), "aa", 1).await.unwrap().id;
    assert!(again > other);

    // What is recorded for it now is passed over.
    write(store, doomed, &records_of(1)).await;
    store.insert_rollups(&[row]).await.unwrap();
    store.sweep().await.unwrap();
    assert_eq!(fixture.count("invocations").await, 3);
    assert_eq!(fixture.count("logs").await, 3);
    assert_eq!(fixture.count("rollups").await, 1);
    assert_eq!(fixture.count("deleted_functions").await, 0);
    assert_eq!(store.code_in_use().await.unwrap(), ["aa", "bb"]);
}

#[tokio::test]
async fn an_interrupted_removal_is_continued_at_the_next_start() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let id = store.create_function(&spec("f"), "aa", 1).await.unwrap().id;
    write(store, id, &records_of(10)).await;
    // As delete_function leaves it when the server dies right after.
    for sql in [
        "DELETE FROM functions",
        "INSERT INTO deleted_functions VALUES (1)",
    ] {
        sqlx::query(sql)
            .execute(&store.inner.pools.writer)
            .await
            .unwrap();
    }
    let fixture = fixture.reopen().await;
    fixture.store.sweep().await.unwrap();
    assert_eq!(fixture.count("invocations").await, 0);
    assert_eq!(fixture.count("logs").await, 0);
    assert_eq!(fixture.count("deleted_functions").await, 0);
}
