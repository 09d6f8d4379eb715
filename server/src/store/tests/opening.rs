//! Opening: files, connections, migrations.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[tokio::test]
async fn a_database_opens_again_and_is_private() {
    let fixture = Fixture::new().await;
    let created = fixture
        .store
        .create_function(&spec("kept"), "aa", 10)
        .await
        .unwrap();
    for file in std::fs::read_dir(fixture.directory.path()).unwrap() {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let fixture = fixture.reopen().await.reopen().await;
    let functions = fixture.store.functions().await.unwrap();
    assert_eq!(functions.len(), 1);
    assert_eq!(functions[0].id, created.id);
    assert_eq!(functions[0].active.spec, spec("kept"));
    assert_eq!(functions[0].created_at, created.created_at);
    fixture.store.ping().await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_no_database_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hearth.db");
    std::fs::write(&file, vec![b'x'; 8192]).unwrap();
    let error = Store::open(&file).await.unwrap_err();
    assert!(
        error.to_string().starts_with("open the database: "),
        "{error}"
    );
    assert_eq!(std::fs::read(&file).unwrap(), vec![b'x'; 8192]);
}

#[tokio::test]
async fn the_writer_syncs_and_the_readers_cannot_write() {
    let Fixture { store, directory } = Fixture::new().await;
    let pools = &store.inner.pools;
    let pragma = async |pool: &sqlx::SqlitePool, sql: &'static str| -> i64 {
        sqlx::query(sql).fetch_one(pool).await.unwrap().get(0)
    };
    assert_eq!(pragma(&pools.writer, "PRAGMA synchronous").await, 2);
    assert_eq!(pragma(&pools.writer, "PRAGMA foreign_keys").await, 1);
    let mode: String = sqlx::query("PRAGMA journal_mode")
        .fetch_one(&pools.writer)
        .await
        .unwrap()
        .get(0);
    assert_eq!(mode, "wal");
    let refused = sqlx::query("DELETE FROM tokens")
        .execute(&pools.readers)
        .await;
    assert!(refused.is_err());
    drop(directory);
}

/// A build that missed a new migration (cargo does not watch the directory) fails here instead of in production.
#[test]
fn every_migration_is_in_the_binary() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations");
    let mut files: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    let mut embedded: Vec<String> = sqlx::migrate!("../migrations")
        .iter()
        .map(|migration| migration.sql.as_str().to_owned())
        .collect();
    files.sort();
    embedded.sort();
    assert_eq!(files, embedded);
}
