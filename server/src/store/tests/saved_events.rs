//! Saved events belong to one function and go with it.

use super::*;
use crate::store::{MAX_SAVED_EVENTS, SavedEvent, Saving};

#[tokio::test]
async fn events_are_saved_replaced_and_deleted() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let one = store
        .create_function(&spec("one"), "a", 1)
        .await
        .unwrap()
        .id;
    let two = store
        .create_function(&spec("two"), "a", 1)
        .await
        .unwrap()
        .id;

    let Saving::Created(id) = store.save_event(one, "empty", "{}").await.unwrap() else {
        panic!("it is new");
    };
    store.save_event(two, "empty", "[]").await.unwrap();
    assert_eq!(
        store
            .save_event(one, "empty", "{\"a\": 1.0}")
            .await
            .unwrap(),
        Saving::Replaced(id)
    );
    assert_eq!(
        store.saved_events(one).await.unwrap(),
        [SavedEvent {
            id,
            name: "empty".into()
        }]
    );
    assert_eq!(
        store.saved_event(one, id).await.unwrap().as_deref(),
        Some("{\"a\": 1.0}")
    );
    // Another function's number leads nowhere.
    assert_eq!(store.saved_event(two, id).await.unwrap(), None);
    assert!(!store.delete_saved_event(two, id).await.unwrap());
    assert!(store.delete_saved_event(one, id).await.unwrap());
    assert!(store.saved_events(one).await.unwrap().is_empty());

    store.delete_function(two).await.unwrap();
    assert_eq!(fixture.count("saved_events").await, 0);
}

#[tokio::test]
async fn there_are_only_so_many() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let function = store
        .create_function(&spec("one"), "a", 1)
        .await
        .unwrap()
        .id;
    for number in 0..MAX_SAVED_EVENTS {
        store
            .save_event(function, &format!("event {number}"), "1")
            .await
            .unwrap();
    }
    assert_eq!(
        store.save_event(function, "one more", "1").await.unwrap(),
        Saving::Full
    );
    assert!(matches!(
        store.save_event(function, "event 0", "2").await.unwrap(),
        Saving::Replaced(_)
    ));
}
