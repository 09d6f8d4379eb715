//! Tokens: found by their secret, limited, expiring, their last use.

use super::*;
use crate::model::{NewToken, SessionOwner};

fn named(name: &str, rights: &[Right]) -> NewToken {
    NewToken {
        name: name.into(),
        rights: rights.to_vec(),
        scope: None,
        expires_at: None,
    }
}

#[tokio::test]
async fn tokens_are_found_by_their_secret_and_stored_without_it() {
    let fixture = Fixture::new().await;
    let rights = [Right::Read, Right::Invoke];
    let (token, secret) = fixture
        .store
        .create_token(named("ci", &rights))
        .await
        .unwrap();
    assert!(secret.starts_with("hth_") && secret.len() == 47, "{secret}");
    assert_eq!(fixture.store.find_token(&secret).as_deref(), Some(&token));
    assert_eq!(token.rights, rights);
    assert_eq!(fixture.store.find_token(""), None);
    assert_eq!(fixture.store.find_token(&secret[..46]), None);
    let (later, _) = fixture.store.create_token(named("ci", &[])).await.unwrap();
    let owner = SessionOwner::Token(token.id);
    let cookie = fixture
        .store
        .create_session(owner, "192.0.2.1", "curl")
        .await
        .unwrap();
    let ids: Vec<i64> = fixture
        .store
        .tokens()
        .iter()
        .map(|token| token.id)
        .collect();
    assert_eq!(ids, [later.id, token.id]);

    for file in std::fs::read_dir(fixture.directory.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for hidden in [&secret[4..], &cookie] {
            let found = bytes
                .windows(hidden.len())
                .any(|window| window == hidden.as_bytes());
            assert!(!found);
        }
    }

    let fixture = fixture.reopen().await;
    assert_eq!(fixture.store.find_token(&secret).as_deref(), Some(&token));
    let delete = async |id| fixture.store.delete_token(id).await.unwrap();
    assert_eq!(delete(token.id).await.as_deref(), Some("ci"));
    assert_eq!(delete(token.id).await, None);
    assert_eq!(fixture.store.find_token(&secret), None);
    assert!(fixture.store.find_session(&cookie).await.unwrap().is_none());
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.store.find_token(&secret), None);
    assert_eq!(fixture.count("sessions").await, 0);
}

#[tokio::test]
async fn a_changed_admin_token_takes_the_old_one_away() {
    let Fixture { store, directory } = Fixture::new().await;
    let all = Right::ALL;
    store.ensure_token("admin", "first", &all).await.unwrap();
    store.ensure_token("admin", "first", &all).await.unwrap();
    let admin = store.find_token("first").unwrap();
    assert_eq!(store.tokens().len(), 1);
    let cookie = store
        .create_session(SessionOwner::Token(admin.id), "", "")
        .await
        .unwrap();
    // A token of the same name that a person made is another matter.
    let (made, made_secret) = store
        .create_token(NewToken {
            scope: Some(vec!["a".into()]),
            ..named("admin", &[Right::Read])
        })
        .await
        .unwrap();

    store.ensure_token("admin", "second", &all).await.unwrap();
    assert_eq!(store.find_token("first"), None);
    assert!(store.find_session(&cookie).await.unwrap().is_none());
    assert_eq!(store.find_token("second").unwrap().rights, all);
    assert_eq!(store.find_token(&made_secret).as_deref(), Some(&made));

    // A person's token that becomes the configured one gets the rights, for every function.
    store
        .ensure_token("admin", &made_secret, &all)
        .await
        .unwrap();
    assert_eq!(store.find_token("second"), None);
    let promoted = store.find_token(&made_secret).unwrap();
    assert_eq!(
        (promoted.id, promoted.rights.as_slice()),
        (made.id, &all[..])
    );
    assert_eq!(promoted.scope, None);
    drop(directory);
}

#[tokio::test]
async fn limits_and_expiry_survive_a_restart_and_an_expired_token_opens_nothing() {
    let fixture = Fixture::new().await;
    let now = Timestamp::now();
    let soon = now + jiff::SignedDuration::from_hours(1);
    let scope = Some(vec!["a".to_owned(), "b".to_owned()]);
    let limited = NewToken {
        scope: scope.clone(),
        expires_at: Some(soon),
        ..named("limited", &[Right::Read])
    };
    let (token, secret) = fixture.store.create_token(limited).await.unwrap();
    let past = NewToken {
        expires_at: Some(now),
        ..named("past", &[Right::Read])
    };
    let (expired, old_secret) = fixture.store.create_token(past).await.unwrap();
    let cookie = fixture
        .store
        .create_session(SessionOwner::Token(expired.id), "", "")
        .await
        .unwrap();
    let fixture = fixture.reopen().await;
    let found = fixture.store.find_token(&secret).unwrap();
    assert_eq!(found.scope, scope);
    assert_eq!(found.expires_at, token.expires_at);
    assert_eq!(fixture.store.find_token(&old_secret), None);
    assert!(fixture.store.find_session(&cookie).await.unwrap().is_none());
    assert_eq!(fixture.store.tokens().len(), 2, "it is still listed");
}

#[tokio::test]
async fn the_last_use_is_shown_at_once_and_written_in_a_batch() {
    let fixture = Fixture::new().await;
    let (token, secret) = fixture.store.create_token(named("ci", &[])).await.unwrap();
    let of = |store: &Store, id| {
        let tokens = store.tokens();
        tokens.iter().find(|t| t.id == id).unwrap().last_used_at
    };
    let stored = async |fixture: &Fixture| -> Option<i64> {
        sqlx::query("SELECT last_used_us FROM tokens WHERE name = 'ci'")
            .fetch_one(fixture.store.readers())
            .await
            .unwrap()
            .get(0)
    };
    assert_eq!(of(&fixture.store, token.id), None);
    fixture.store.find_token(&secret).unwrap();
    let used = of(&fixture.store, token.id).expect("used");
    assert_eq!(stored(&fixture).await, None, "no request writes");
    // Another token's making, which replaces the map, loses nothing.
    fixture
        .store
        .create_token(named("other", &[]))
        .await
        .unwrap();
    assert_eq!(of(&fixture.store, token.id), Some(used));

    fixture.store.write_token_use().await.unwrap();
    assert_eq!(stored(&fixture).await, Some(used.as_microsecond()));
    let changes = async || -> i64 {
        sqlx::query("SELECT total_changes()")
            .fetch_one(fixture.store.writer())
            .await
            .unwrap()
            .get(0)
    };
    let before = changes().await;
    fixture.store.write_token_use().await.unwrap();
    assert_eq!(
        changes().await,
        before,
        "what is known is not written again"
    );
    // Closing writes what is left.
    let (late, late_secret) = fixture
        .store
        .create_token(named("late", &[]))
        .await
        .unwrap();
    fixture.store.find_token(&late_secret).unwrap();
    let fixture = fixture.reopen().await;
    assert!(of(&fixture.store, late.id).is_some());
    assert_eq!(of(&fixture.store, token.id), Some(used));
}
