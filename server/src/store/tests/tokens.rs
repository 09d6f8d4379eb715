//! Tokens and sessions.

use super::*;

#[tokio::test]
async fn tokens_are_found_by_their_secret_and_stored_without_it() {
    let fixture = Fixture::new().await;
    let rights = [Right::Read, Right::Invoke];
    let (token, secret) = fixture.store.create_token("ci", &rights).await.unwrap();
    assert!(secret.starts_with("hth_") && secret.len() == 47, "{secret}");
    assert_eq!(fixture.store.find_token(&secret), Some(token.clone()));
    assert_eq!(token.rights, rights);
    assert_eq!(fixture.store.find_token(""), None);
    assert_eq!(fixture.store.find_token(&secret[..46]), None);
    let (later, _) = fixture.store.create_token("ci", &[]).await.unwrap();
    let (cookie, _) = fixture
        .store
        .create_session(token.id, Duration::from_secs(60))
        .await
        .unwrap();
    let tokens = fixture.store.tokens().await.unwrap();
    assert_eq!(tokens, [later.clone(), token.clone()]);

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
    assert_eq!(fixture.store.find_token(&secret), Some(token.clone()));
    assert!(fixture.store.delete_token(token.id).await.unwrap());
    assert!(!fixture.store.delete_token(token.id).await.unwrap());
    assert_eq!(fixture.store.find_token(&secret), None);
    assert!(fixture.store.find_session(&cookie).await.unwrap().is_none());
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.store.find_token(&secret), None);
    assert_eq!(fixture.count("sessions").await, 0);
}

#[tokio::test]
async fn a_changed_admin_token_takes_the_old_one_away() {
    let Fixture { store, directory } = Fixture::new().await;
    let all = [Right::Read, Right::Invoke, Right::Write, Right::Admin];
    store.ensure_token("admin", "first", &all).await.unwrap();
    store.ensure_token("admin", "first", &all).await.unwrap();
    let admin = store.find_token("first").unwrap();
    assert_eq!(store.tokens().await.unwrap(), std::slice::from_ref(&admin));
    let (cookie, _) = store
        .create_session(admin.id, Duration::from_secs(60))
        .await
        .unwrap();
    // A token of the same name that a person made is another matter.
    let (made, made_secret) = store.create_token("admin", &[Right::Read]).await.unwrap();

    store.ensure_token("admin", "second", &all).await.unwrap();
    assert_eq!(store.find_token("first"), None);
    assert!(store.find_session(&cookie).await.unwrap().is_none());
    assert_eq!(store.find_token("second").unwrap().rights, all);
    assert_eq!(store.find_token(&made_secret), Some(made.clone()));

    // A person's token that becomes the configured one gets the rights.
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
    drop(directory);
}

#[tokio::test]
async fn sessions_expire_and_end() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let (token, _) = store.create_token("me", &[Right::Read]).await.unwrap();
    let hour = Duration::from_secs(3600);
    let hour_us = 3_600_000_000;
    let (cookie, session) = store.create_session_at(token.id, hour, 0).await.unwrap();
    let found = store.find_session_at(&cookie, hour_us - 1).await.unwrap();
    let found = found.unwrap();
    assert_eq!((found.token, &found.csrf), (token.clone(), &session.csrf));
    assert_ne!(cookie, session.csrf);
    assert!(
        store
            .find_session_at(&cookie, hour_us)
            .await
            .unwrap()
            .is_none()
    );
    assert!(store.find_session_at("", 0).await.unwrap().is_none());

    // Opening another removes the expired one.
    let (second, _) = store
        .create_session_at(token.id, hour, hour_us)
        .await
        .unwrap();
    assert_eq!(fixture.count("sessions").await, 1);
    store.delete_session(&second).await.unwrap();
    assert!(store.find_session_at(&second, 0).await.unwrap().is_none());
    let unknown = store.create_session(token.id + 1, hour).await;
    assert!(unknown.is_err());
}
