//! Users and their sessions.

use super::*;
use crate::model::{
    Caller, Role, SESSION_ABSOLUTE, SESSION_IDLE, SessionOwner, UserPatch, UserView,
};

const HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ$aGFzaA";

fn micros(duration: Duration) -> i64 {
    duration.as_micros() as i64
}

async fn user(store: &Store, name: &str, role: Role) -> UserView {
    store.create_user(name, role, HASH).await.unwrap()
}

fn role(role: Role) -> UserPatch {
    UserPatch {
        role: Some(role),
        ..UserPatch::default()
    }
}

fn disabled(disabled: bool) -> UserPatch {
    UserPatch {
        disabled: Some(disabled),
        ..UserPatch::default()
    }
}

#[tokio::test]
async fn users_are_made_changed_and_deleted() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    assert!(!store.has_users().await.unwrap());
    let first = store.create_first_user("ada", HASH).await.unwrap().unwrap();
    assert_eq!((first.role, first.disabled), (Role::Admin, false));
    assert!(store.has_users().await.unwrap());
    assert_eq!(store.create_first_user("eve", HASH).await.unwrap(), None);
    user(store, "bob", Role::Viewer).await;
    let twice = store.create_user("bob", Role::Admin, HASH).await;
    assert!(matches!(twice, Err(StoreError::UserExists(name)) if name == "bob"));
    let names: Vec<String> = store
        .users()
        .await
        .unwrap()
        .into_iter()
        .map(|user| user.name)
        .collect();
    assert_eq!(names, ["ada", "bob"]);

    let found = store.user_with_password("bob").await.unwrap().unwrap();
    assert_eq!((found.0.role, found.1.as_str()), (Role::Viewer, HASH));
    let patch = UserPatch {
        password: Some("another".into()),
        ..role(Role::Operator)
    };
    let changed = store.update_user("bob", &patch, None).await.unwrap();
    assert_eq!(changed.unwrap().role, Role::Operator);
    let found = store.user_with_password("bob").await.unwrap().unwrap();
    assert_eq!(found.1, "another");
    assert_eq!(store.update_user("eve", &patch, None).await.unwrap(), None);

    let fixture = fixture.reopen().await;
    let store = &fixture.store;
    assert!(store.delete_user("bob").await.unwrap());
    assert!(!store.delete_user("bob").await.unwrap());
    assert!(store.user("bob").await.unwrap().is_none());
    assert!(store.user_with_password("bob").await.unwrap().is_none());
}

#[tokio::test]
async fn an_admin_who_can_log_in_always_remains() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let no_admin = store.create_user("bob", Role::Operator, HASH).await;
    assert!(matches!(no_admin, Err(StoreError::NoAdmin)));
    assert!(!store.has_users().await.unwrap());

    user(store, "ada", Role::Admin).await;
    user(store, "bob", Role::Viewer).await;
    let refused = async || {
        let last =
            |error: StoreError| matches!(&error, StoreError::LastAdmin(name) if name == "ada");
        for patch in [role(Role::Operator), role(Role::Viewer), disabled(true)] {
            assert!(last(
                store.update_user("ada", &patch, None).await.unwrap_err()
            ));
        }
        assert!(last(store.delete_user("ada").await.unwrap_err()));
        let ada = store.user("ada").await.unwrap().unwrap();
        assert_eq!((ada.role, ada.disabled), (Role::Admin, false));
    };
    refused().await;
    // A disabled admin does not count.
    store
        .update_user("bob", &role(Role::Admin), None)
        .await
        .unwrap();
    store
        .update_user("bob", &disabled(true), None)
        .await
        .unwrap();
    refused().await;
    store
        .update_user("bob", &disabled(false), None)
        .await
        .unwrap();
    store
        .update_user("ada", &role(Role::Viewer), None)
        .await
        .unwrap();
    let last = store.delete_user("bob").await;
    assert!(matches!(last, Err(StoreError::LastAdmin(name)) if name == "bob"));
}

#[tokio::test]
async fn two_demotions_at_a_time_leave_one_admin() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    user(store, "ada", Role::Admin).await;
    user(store, "bob", Role::Admin).await;
    let viewer = role(Role::Viewer);
    let (one, other) = tokio::join!(
        store.update_user("ada", &viewer, None),
        store.update_user("bob", &viewer, None)
    );
    assert!(one.is_ok() != other.is_ok());
}

#[tokio::test]
async fn sessions_end_when_idle_and_in_any_case() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let ada = user(store, "ada", Role::Admin).await;
    let owner = SessionOwner::User(ada.id);
    let start = Timestamp::now().as_microsecond();
    let cookie = store
        .create_session_at(owner, "192.0.2.1", "curl/8", start)
        .await
        .unwrap();
    let find = async |at: i64| store.find_session_at(&cookie, at).await.unwrap();
    let (session, seen) = find(start).await.unwrap();
    assert_eq!(seen, start);
    assert!(matches!(&session.caller, Caller::User(user) if user.name == "ada"));
    assert_ne!(cookie, session.csrf);
    assert!(store.find_session_at("", start).await.unwrap().is_none());

    let idle = micros(SESSION_IDLE);
    assert!(find(start + idle - 1).await.is_some());
    assert!(find(start + idle).await.is_none());
    // Used again and again it lasts, to its end.
    let mut now = start;
    while now < start + micros(SESSION_ABSOLUTE) {
        assert!(find(now).await.is_some());
        store.see_session(session.id, now).await.unwrap();
        now += idle - 1;
    }
    store
        .see_session(session.id, start + micros(SESSION_ABSOLUTE) - 1)
        .await
        .unwrap();
    assert!(find(start + micros(SESSION_ABSOLUTE) - 1).await.is_some());
    assert!(find(start + micros(SESSION_ABSOLUTE)).await.is_none());

    // Opening another removes what has ended.
    let later = start + micros(SESSION_ABSOLUTE);
    let second = store.create_session_at(owner, "", "", later).await.unwrap();
    assert_eq!(fixture.count("sessions").await, 1);
    store.delete_session(&second).await.unwrap();
    assert_eq!(fixture.count("sessions").await, 0);
    let unknown = SessionOwner::Token(99);
    assert!(store.create_session(unknown, "", "").await.is_err());
}

#[tokio::test]
async fn a_sessions_use_is_written_at_most_once_a_minute() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let ada = user(store, "ada", Role::Admin).await;
    let cookie = store
        .create_session_at(SessionOwner::User(ada.id), "", "", 1_000_000_000)
        .await
        .unwrap();
    let seen = async || -> i64 {
        sqlx::query("SELECT seen_us FROM sessions")
            .fetch_one(store.readers())
            .await
            .unwrap()
            .get(0)
    };
    let (session, _) = store
        .find_session_at(&cookie, 1_000_000_001)
        .await
        .unwrap()
        .unwrap();
    store.see_session(session.id, 1_030_000_000).await.unwrap();
    assert_eq!(seen().await, 1_000_000_000);
    store.see_session(session.id, 1_061_000_000).await.unwrap();
    assert_eq!(seen().await, 1_061_000_000);
    store.see_session(session.id, 1_062_000_000).await.unwrap();
    assert_eq!(seen().await, 1_061_000_000);
}

#[tokio::test]
async fn sessions_are_listed_and_ended_by_their_owner_only() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let ada = user(store, "ada", Role::Admin).await;
    let bob = user(store, "bob", Role::Viewer).await;
    let (ada, bob) = (SessionOwner::User(ada.id), SessionOwner::User(bob.id));
    let here = store
        .create_session(ada, "192.0.2.1", "Firefox")
        .await
        .unwrap();
    let there = store
        .create_session(ada, "192.0.2.2", "curl")
        .await
        .unwrap();
    let bobs = store
        .create_session(bob, "192.0.2.3", "curl")
        .await
        .unwrap();
    let open = async |cookie: &str| store.find_session(cookie).await.unwrap();
    let (first, second) = (open(&here).await.unwrap(), open(&there).await.unwrap());
    let listed = store.sessions(ada).await.unwrap();
    assert_eq!(listed.len(), 2);
    let row = listed.iter().find(|row| row.id == first.id).unwrap();
    assert_eq!(
        (row.address.as_str(), row.agent.as_str()),
        ("192.0.2.1", "Firefox")
    );
    let counted: Vec<u32> = store
        .users()
        .await
        .unwrap()
        .iter()
        .map(|u| u.sessions)
        .collect();
    assert_eq!(counted, [2, 1]);
    assert!(
        store
            .user("ada")
            .await
            .unwrap()
            .unwrap()
            .last_login_at
            .is_some()
    );

    assert!(!store.end_session(bob, first.id).await.unwrap());
    assert!(store.end_session(ada, second.id).await.unwrap());
    assert!(open(&there).await.is_none());
    store.create_session(ada, "", "").await.unwrap();
    assert_eq!(store.end_sessions(ada, Some(first.id)).await.unwrap(), 1);
    assert!(open(&here).await.is_some() && open(&bobs).await.is_some());

    // A password and a lock-out end what is open, a role does not.
    store
        .update_user("bob", &role(Role::Operator), None)
        .await
        .unwrap();
    let session = open(&bobs).await.unwrap();
    assert!(session.caller.may(Right::Write));
    let password = UserPatch {
        password: Some("x".into()),
        ..UserPatch::default()
    };
    store
        .update_user("bob", &password, Some(session.id))
        .await
        .unwrap();
    assert!(open(&bobs).await.is_some());
    store.update_user("bob", &password, None).await.unwrap();
    assert!(open(&bobs).await.is_none());
    let bobs = store.create_session(bob, "", "").await.unwrap();
    store
        .update_user("bob", &disabled(true), None)
        .await
        .unwrap();
    assert!(open(&bobs).await.is_none());
    // Not even one that was opened in between.
    let between = store.create_session(bob, "", "").await.unwrap();
    assert!(open(&between).await.is_none());
    store.delete_user("bob").await.unwrap();
    assert_eq!(fixture.count("sessions").await, 1);
}

#[tokio::test]
async fn one_owner_has_so_many_sessions() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let ada = user(store, "ada", Role::Admin).await;
    let owner = SessionOwner::User(ada.id);
    let mut cookies = Vec::new();
    for number in 0..55 {
        let at = 1_000_000_000 + number;
        cookies.push(
            store
                .create_session_at(owner, "", &"x".repeat(1000), at)
                .await
                .unwrap(),
        );
    }
    assert_eq!(fixture.count("sessions").await, 50);
    let found = async |cookie: &str| store.find_session_at(cookie, 1_000_001_000).await.unwrap();
    assert!(found(&cookies[4]).await.is_none() && found(&cookies[5]).await.is_some());
}
