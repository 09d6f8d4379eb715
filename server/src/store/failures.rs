//! The latest unsuccessful invocations.

use uuid::Uuid;

use super::codes::{StoredCode, decode_error, timestamp};
use super::{During, Store, StoreError};
use crate::model::{Failure, InvocationId, Status};

impl Store {
    /// The newest `limit` failures among the newest `among` invocations of all functions, newest first.
    pub(crate) async fn newest_failures(
        &self,
        among: u32,
        limit: u32,
    ) -> Result<Vec<Failure>, StoreError> {
        let succeeded = Status::Succeeded.code();
        let work = async {
            let rows = sqlx::query!(
                r#"SELECT i.id AS "id!: Vec<u8>", f.name AS "function!: String", i.status AS "status!: i64",
                          coalesce(i.finished_us, i.received_us) AS "at!: i64",
                          i.error ->> '$.errorType' AS "error_type?: String"
                   FROM (SELECT * FROM invocations ORDER BY id DESC LIMIT ?1) i
                   JOIN functions f ON f.id = i.function_id
                   WHERE i.status <> ?2 ORDER BY i.id DESC LIMIT ?3"#,
                among,
                succeeded,
                limit
            )
            .fetch_all(self.readers())
            .await?;
            rows.into_iter()
                .map(|row| {
                    Ok(Failure {
                        id: InvocationId(Uuid::from_slice(&row.id).map_err(decode_error)?),
                        function: row.function,
                        status: Status::from_code(row.status)?,
                        error_type: row.error_type,
                        at: timestamp(row.at)?,
                    })
                })
                .collect::<Result<Vec<_>, sqlx::Error>>()
        };
        work.await.during("find the last failures")
    }
}
