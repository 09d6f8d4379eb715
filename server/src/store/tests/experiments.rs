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
        let id = store.create_experiment(new).await.unwrap();
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
async fn files_and_configurations_are_added_up() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    assert_eq!(store.experiments_bytes().await.unwrap(), 0);
    let config = "{\"first\": \"ä\"}";
    let bytes = config.len() as u64;
    for kind in ["duet", "tail", "duet"] {
        let title = kind;
        let new = NewExperiment {
            kind,
            title,
            config,
            created_by: "ada",
        };
        store.create_experiment(new).await.unwrap();
    }
    assert_eq!(store.experiments_bytes().await.unwrap(), 3 * bytes);
    store.start_experiment().await.unwrap().expect("it waits");
    let add = async |most| {
        let added = store.add_experiment_file(1, "a", b"12345", [5, most]).await;
        added.unwrap()
    };
    assert_eq!(add(3 * bytes + 4).await, Some(false));
    assert_eq!(add(3 * bytes + 5).await, Some(true));
    assert_eq!(store.experiments_bytes().await.unwrap(), 3 * bytes + 5);

    assert_eq!(store.other_experiments(3, "duet", 9).await.unwrap(), []);
    for id in 1..=2 {
        let end = ExperimentEnd {
            state: ExperimentState::Succeeded,
            error: None,
            result: Some(json!({})),
        };
        assert!(store.end_experiment(id, &end).await.unwrap());
        store.start_experiment().await.unwrap();
    }
    let others = store.other_experiments(3, "duet", 9).await.unwrap();
    let ids: Vec<i64> = others.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [1, 2], "those of its kind first");
    assert_eq!(store.other_experiments(1, "x", 9).await.unwrap()[0].0, 2);
}
