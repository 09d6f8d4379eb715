//! What ran at a time: invocations of all functions, deployments, experiments.

use jiff::Timestamp;

use super::codes::{narrow, timestamp, unsigned};
use super::{During, Store, StoreError};
use crate::model::{DeployedMeanwhile, ExperimentMeanwhile, InvocationId, RanMeanwhile};

/// Ids begin with the time of admission. What took less than a second and overlaps was admitted less than that before; all that took
/// longer is in an index.
const LOOK_BACK_US: i64 = 1_000_000;
/// The longest that a function may run, µs, and a minute for its queue and response.
const LONGEST_US: i64 = 16 * 60 * 1_000_000;
/// Most rows that are looked at, newest first: some 50 ms.
const ROWS_MAX: i64 = 30_000;
/// How long after an invocation a deployment that was under way meanwhile may be stored, µs.
const BUILT_US: i64 = 10_000_000;
/// Most deployments and experiments.
const LISTED_MAX: i64 = 20;

fn first_id(us: i64) -> Vec<u8> {
    InvocationId::first_of(us).0.as_bytes().to_vec()
}

impl Store {
    /// Other invocations that had not ended at `from` and were admitted before `to`, by function.
    pub(crate) async fn ran(
        &self,
        from: Timestamp,
        to: Timestamp,
        except: InvocationId,
    ) -> Result<Vec<RanMeanwhile>, StoreError> {
        let (from, to) = (from.as_microsecond(), to.as_microsecond());
        let except = except.0.as_bytes().to_vec();
        let recent = first_id(from - LOOK_BACK_US);
        let oldest = first_id(from - LONGEST_US);
        // Of the millisecond of `to`, too.
        let end = first_id(to + 1_000);
        let work = async {
            let short = sqlx::query!(
                r#"SELECT f.name AS function, count(*) AS "count!: i64",
                          coalesce(sum(i.start_code <> 1), 0) AS "cold!: i64",
                          coalesce(sum(min(i.finished_us, ?2) - max(i.received_us, ?1)), 0) AS "overlap!: i64"
                   FROM (SELECT function_id, start_code, received_us, finished_us, id
                         FROM invocations INDEXED BY invocations_by_id
                         WHERE id >= ?3 AND id < ?4 ORDER BY id DESC LIMIT ?6) i
                   JOIN subjects f ON f.id = i.function_id
                   WHERE i.finished_us > ?1 AND i.received_us < ?2 AND i.id <> ?5
                   GROUP BY f.id"#,
                from,
                to,
                recent,
                end,
                except,
                ROWS_MAX
            )
            .fetch_all(self.readers())
            .await?;
            let long = sqlx::query!(
                r#"SELECT f.name AS function, count(*) AS "count!: i64",
                          coalesce(sum(i.start_code <> 1), 0) AS "cold!: i64",
                          coalesce(sum(min(i.finished_us, ?2) - ?1), 0) AS "overlap!: i64"
                   FROM subjects f CROSS JOIN invocations i INDEXED BY invocations_slow ON i.function_id = f.id
                   WHERE i.total_us >= 1000000 AND i.id >= ?3 AND i.id < ?4 AND i.id <> ?5 AND i.finished_us > ?1
                   GROUP BY f.id"#,
                from,
                to,
                oldest,
                recent,
                except
            )
            .fetch_all(self.readers())
            .await?;
            let mut all: Vec<RanMeanwhile> = Vec::new();
            let short = short
                .into_iter()
                .map(|row| (row.function, row.count, row.cold, row.overlap));
            let long = long
                .into_iter()
                .map(|row| (row.function, row.count, row.cold, row.overlap));
            for (function, count, cold, overlap) in short.chain(long) {
                let (count, cold) = (unsigned(count), unsigned(cold));
                let overlap_us = unsigned(overlap);
                match all.iter_mut().find(|ran| ran.function == function) {
                    Some(ran) => {
                        ran.count += count;
                        ran.cold += cold;
                        ran.overlap_us += overlap_us;
                    }
                    None => all.push(RanMeanwhile {
                        function,
                        count,
                        cold,
                        overlap_us,
                    }),
                }
            }
            all.sort_by_key(|ran| std::cmp::Reverse(ran.overlap_us));
            Ok(all)
        };
        work.await.during("look what else ran")
    }

    /// Versions that were stored around a time.
    pub(crate) async fn deployed_around(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<DeployedMeanwhile>, StoreError> {
        let from = from.as_microsecond() - LOOK_BACK_US;
        let to = to.as_microsecond() + BUILT_US;
        let work = async {
            let rows = sqlx::query!(
                r#"SELECT f.name, v.version AS "version!: i64", v.created_us
                   FROM versions v JOIN functions f ON f.id = v.function_id
                   WHERE v.created_us BETWEEN ?1 AND ?2 ORDER BY v.created_us LIMIT ?3"#,
                from,
                to,
                LISTED_MAX
            )
            .fetch_all(self.readers())
            .await?;
            let read = rows.into_iter().map(|row| {
                Ok::<_, sqlx::Error>(DeployedMeanwhile {
                    function: row.name,
                    version: narrow("version number", row.version)?,
                    at: timestamp(row.created_us)?,
                })
            });
            read.collect::<Result<Vec<_>, _>>()
        };
        work.await.during("look what was deployed")
    }

    /// Experiments that ran at a time.
    pub(crate) async fn experiments_during(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<ExperimentMeanwhile>, StoreError> {
        let (from, to) = (from.as_microsecond(), to.as_microsecond());
        let rows = sqlx::query!(
            r#"SELECT id AS "id!: i64", title FROM experiments
               WHERE started_us <= ?2 AND (ended_us IS NULL OR ended_us >= ?1) ORDER BY id LIMIT ?3"#,
            from,
            to,
            LISTED_MAX
        )
        .fetch_all(self.readers())
        .await
        .during("look which experiments ran")?;
        let read = rows.into_iter().map(|row| ExperimentMeanwhile {
            id: row.id,
            title: row.title,
        });
        Ok(read.collect())
    }
}
