//! The search finds what a plain one over the same lines does, stays in step with them, and takes any text.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::history::SearchText;
use crate::model::FoundLine;

async fn found(store: &Store, function: i64, typed: &str) -> Vec<FoundLine> {
    let query = SearchText::parse(typed).unwrap().in_function(function);
    store
        .search_logs(&query, None, i64::MAX, 1000)
        .await
        .unwrap()
}

async fn texts(store: &Store, function: i64, typed: &str) -> Vec<String> {
    let lines = found(store, function, typed).await;
    lines.into_iter().map(|line| line.entry.line.text).collect()
}

#[tokio::test]
async fn words_phrases_and_beginnings_are_found_and_marked() {
    let Fixture { store, directory } = Fixture::new().await;
    let one = store
        .create_function(&spec("one"), "aa", 1)
        .await
        .unwrap()
        .id;
    let two = store
        .create_function(&spec("two"), "aa", 1)
        .await
        .unwrap()
        .id;
    let lines = [
        "connection lost: order_id=42",
        "Connected to db <b>",
        "lost the connection",
        "straße ÄRGER",
    ];
    let record = finished(Status::Succeeded, &lines);
    write(&store, one, std::slice::from_ref(&record)).await;
    write(
        &store,
        two,
        &[finished(Status::Succeeded, &["connection of another"])],
    )
    .await;
    for (typed, expected) in [
        ("connection", vec![lines[2], lines[0]]),
        ("\"connection lost\"", vec![lines[0]]),
        ("lost connection", vec![lines[2], lines[0]]),
        ("conn*", vec![lines[2], lines[1], lines[0]]),
        ("order_id=42", vec![lines[0]]),
        ("ärger", vec![lines[3]]),
        ("arger", vec![]),
        ("another", vec![]),
        ("f1", vec![]),
        ("42 OR db", vec![]),
    ] {
        assert_eq!(texts(&store, one, typed).await, expected, "{typed}");
    }
    let marked = found(&store, one, "conn* b").await;
    let pieces: Vec<_> = marked[0]
        .pieces
        .iter()
        .map(|(found, text)| (*found, text.as_str()))
        .collect();
    let expected = [
        (true, "Connected"),
        (false, " to db <"),
        (true, "b"),
        (false, ">"),
    ];
    assert_eq!(pieces, expected);
    assert_eq!(marked[0].entry.invocation, Some(record.id));

    let query = SearchText::parse("connection").unwrap().in_function(one);
    let of = async |id| {
        store
            .search_logs(&query, Some(id), i64::MAX, 10)
            .await
            .unwrap()
    };
    assert_eq!(of(record.id).await.len(), 2);
    assert_eq!(of(InvocationId::new()).await.len(), 0);
    // By key: what was found before is not found again.
    let first = store.search_logs(&query, None, i64::MAX, 1).await.unwrap();
    let second = store
        .search_logs(&query, None, first[0].key, 9)
        .await
        .unwrap();
    assert_eq!(second[0].entry.line.text, lines[0]);
    drop(directory);
}

#[tokio::test]
async fn what_is_deleted_is_not_found_and_the_index_is_sound() {
    let Fixture { store, directory } = Fixture::new().await;
    let kept = store
        .create_function(&spec("kept"), "aa", 1)
        .await
        .unwrap()
        .id;
    let gone = store
        .create_function(&spec("gone"), "aa", 1)
        .await
        .unwrap()
        .id;
    for function in [kept, gone, kept, gone] {
        write(&store, function, &records_of(30)).await;
    }
    assert_eq!(texts(&store, gone, "x").await.len(), 60);
    store.delete_function(gone).await.unwrap();
    store.sweep().await.unwrap();
    assert_eq!(texts(&store, gone, "x").await.len(), 0);
    assert_eq!(texts(&store, kept, "x").await.len(), 60);
    store.remove_lines(Timestamp::now(), 25).await.unwrap();
    assert_eq!(texts(&store, kept, "x").await.len(), 35);
    // Fails when words and lines are not in step.
    sqlx::query("INSERT INTO log_search (log_search, rank) VALUES ('integrity-check', 1)")
        .execute(store.writer())
        .await
        .unwrap();
    drop(directory);
}

/// Whatever is typed is either explained or searched for: no text reaches the query language of the index.
#[test]
fn any_text_is_searched_for_or_explained() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let fixture = runtime.block_on(Fixture::new());
    let store = &fixture.store;
    let id = runtime.block_on(async {
        let id = store.create_function(&spec("f"), "aa", 1).await.unwrap().id;
        write(
            store,
            id,
            &[finished(
                Status::Succeeded,
                &["a line with some words AND NEAR OR"],
            )],
        )
        .await;
        id
    });
    let pieces = prop_oneof![
        4 => "[ -~]{0,12}",
        2 => any::<String>(),
        1 => proptest::sample::select(vec![
            "NEAR(", "AND", "NOT ", " OR ", "\"", "\"\"", "*", "^", ":", "text:", "owner : f1", "{a b}:", "-", "+", "(", ")",
            "\0", "'", ";--", "words*", "\u{fdd0}", "\u{200b}", "日本", "٣", "ﬁ",
        ]).prop_map(str::to_owned),
    ];
    let texts = proptest::collection::vec(pieces, 0..6).prop_map(|pieces| pieces.concat());
    let outcome = TestRunner::new(Config::with_cases(400)).run(&texts, |typed| {
        if let Ok(text) = SearchText::parse(&typed) {
            let query = text.in_function(id);
            let search = store.search_logs(&query, None, i64::MAX, 10);
            let found = runtime.block_on(search);
            prop_assert!(found.is_ok(), "{:?} as {}: {:?}", typed, query, found.err());
        }
        Ok(())
    });
    outcome.unwrap();
}

/// Words of lines made of a few words are found in exactly those lines.
#[test]
fn words_are_found_in_the_lines_that_have_them() {
    const WORDS: [&str; 6] = ["red", "Green", "blue-ish", "red_hot", "42", "4x2"];
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let fixture = runtime.block_on(Fixture::new());
    let store = &fixture.store;
    let made = std::cell::Cell::new(0);
    let line = proptest::collection::vec(proptest::sample::select(&WORDS[..]), 0..5);
    let lines = proptest::collection::vec(line.prop_map(|words| words.join(" ")), 1..12);
    let word =
        proptest::sample::select(vec!["red", "green", "blue", "ish", "hot", "42", "4x2", "4"]);
    let outcome = TestRunner::new(Config::with_cases(40)).run(&(lines, word), |(lines, word)| {
        made.set(made.get() + 1);
        runtime.block_on(async {
            let name = format!("f{}", made.get());
            let id = store
                .create_function(&spec(&name), "aa", 1)
                .await
                .unwrap()
                .id;
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            write(store, id, &[finished(Status::Succeeded, &lines)]).await;
            let has = |line: &&&str| {
                line.split(|c: char| !c.is_alphanumeric())
                    .any(|part| part.eq_ignore_ascii_case(word))
            };
            let expected: Vec<&str> = lines.iter().rev().filter(has).copied().collect();
            prop_assert_eq!(texts(store, id, word).await, expected);
            Ok(())
        })
    });
    outcome.unwrap();
}
