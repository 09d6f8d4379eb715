//! Experiments that compare the versions of a function.

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::model::{ExperimentEnd, ExperimentState};
use crate::store::NewExperiment;

#[tokio::test]
async fn comparisons_are_of_the_function_that_has_the_name_now() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let start = Timestamp::now();
    let mut begun = start;
    for config in [
        r#"{"first": "summed2@1", "second": "summed2@2"}"#,
        r#"{"first": "summed", "second": "other"}"#,
        r#"{"first": "summed@1", "second": "summed@2", "confidence": 0.9}"#,
    ] {
        let new = NewExperiment {
            kind: "duet",
            title: "one",
            config,
            created_by: "ada",
        };
        let id = store.create_experiment(new, 1_000).await.unwrap();
        let id = id.expect("there is room");
        store.start_experiment().await.unwrap().expect("it waits");
        begun = Timestamp::now();
        let end = ExperimentEnd {
            state: ExperimentState::Succeeded,
            error: None,
            result: Some(json!({})),
        };
        assert!(store.end_experiment(id, &end).await.unwrap());
    }
    let found = store.comparisons_of("summed", start, start).await.unwrap();
    let found: Vec<_> = found.iter().map(|one| (one.id, one.confidence)).collect();
    assert_eq!(found, [(3, Some(0.9)), (2, None)]);
    // The last one ended since the function was made again, but began with the one before.
    let found = store.comparisons_of("summed", start, begun).await.unwrap();
    assert_eq!(found.len(), 0);
    let ended = Timestamp::now();
    let found = store.comparisons_of("summed", ended, start).await.unwrap();
    assert_eq!(found.len(), 0);
}

#[tokio::test]
async fn all_experiments_stay_within_their_bytes() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let new = || NewExperiment {
        kind: "duet",
        title: "one",
        config: "{\"first\": \"ä\"}",
        created_by: "ada",
    };
    let bytes = new().config.len() as u64;
    let first = store.create_experiment(new(), bytes).await.unwrap();
    let first = first.expect("there is room");
    let full = store.create_experiment(new(), 2 * bytes - 1).await.unwrap();
    assert_eq!(full, None);
    store.start_experiment().await.unwrap().expect("it waits");
    let add = async |most| {
        let added = store
            .add_experiment_file(first, "a", b"12345", [5, most])
            .await;
        added.unwrap()
    };
    assert_eq!(
        add(bytes + 4).await,
        Some(false),
        "its configuration counts"
    );
    assert_eq!(add(bytes + 5).await, Some(true));
    let full = store.create_experiment(new(), 2 * bytes + 4).await.unwrap();
    assert_eq!(full, None, "its file counts");
    let fits = store.create_experiment(new(), 2 * bytes + 5).await.unwrap();
    assert!(fits.is_some());
}
