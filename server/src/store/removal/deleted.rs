//! A deleted function's history, in batches.

use sqlx::{Sqlite, Transaction};

use super::{PIECE, size};
use crate::store::codes::unsigned;
use crate::store::sizes::{self, Size, Sizes};

/// Removes invocations of a deleted function, with their events and results.
pub(in crate::store) async fn invocations_of(
    transaction: &mut Transaction<'static, Sqlite>,
    function: i64,
) -> Result<u64, sqlx::Error> {
    let last = sqlx::query_scalar!(
        "SELECT max(id) FROM (SELECT id FROM invocations WHERE function_id = ?1 ORDER BY id LIMIT ?2)",
        function,
        PIECE
    )
    .fetch_one(&mut **transaction)
    .await?;
    let Some(last) = last else {
        return Ok(0);
    };
    let payloads = sqlx::query!(
        r#"SELECT count(*) AS "rows!: i64",
                  coalesce(sum(octet_length(event)), 0) + coalesce(sum(octet_length(result)), 0) AS "text!: i64"
           FROM invocation_payloads
           WHERE invocation IN (SELECT id FROM invocations WHERE function_id = ?1 AND id <= ?2)"#,
        function,
        last
    )
    .fetch_one(&mut **transaction)
    .await?;
    sqlx::query!(
        "DELETE FROM invocation_payloads \
         WHERE invocation IN (SELECT id FROM invocations WHERE function_id = ?1 AND id <= ?2)",
        function,
        last
    )
    .execute(&mut **transaction)
    .await?;
    let text = sqlx::query_scalar!(
        r#"SELECT coalesce(sum(octet_length(error)), 0) + coalesce(sum(octet_length(trace)), 0) AS "text!: i64"
           FROM invocations
           WHERE function_id = ?1 AND id <= ?2"#,
        function,
        last
    )
    .fetch_one(&mut **transaction)
    .await?;
    let removed = sqlx::query!(
        "DELETE FROM invocations WHERE function_id = ?1 AND id <= ?2",
        function,
        last
    )
    .execute(&mut **transaction)
    .await?
    .rows_affected();
    let sizes = Sizes {
        invocations: size(removed, text),
        payloads: size(unsigned(payloads.rows), payloads.text),
        logs: Size::default(),
    };
    sizes::subtract(transaction, &sizes).await?;
    Ok(removed)
}

/// Removes log lines of a deleted function.
pub(in crate::store) async fn lines_of(
    transaction: &mut Transaction<'static, Sqlite>,
    function: i64,
) -> Result<u64, sqlx::Error> {
    let text = sqlx::query_scalar!(
        r#"SELECT coalesce(sum(octet_length(text)), 0) AS "text!: i64" FROM
           (SELECT text FROM logs WHERE function_id = ?1 ORDER BY time_us, seq LIMIT ?2)"#,
        function,
        PIECE
    )
    .fetch_one(&mut **transaction)
    .await?;
    let removed = sqlx::query!(
        "DELETE FROM logs WHERE seq IN \
         (SELECT seq FROM logs WHERE function_id = ?1 ORDER BY time_us, seq LIMIT ?2)",
        function,
        PIECE
    )
    .execute(&mut **transaction)
    .await?
    .rows_affected();
    let sizes = Sizes {
        logs: size(removed, text),
        ..Sizes::default()
    };
    sizes::subtract(transaction, &sizes).await?;
    Ok(removed)
}
