//! Reading finished invocations.
//!
//! A filter uses the most selective index that fits. The rest of it is tested row by row, newest first, on a bounded
//! number of rows: see [`PIECES`].

mod by;
mod row;

use uuid::Uuid;

use by::{By, Columns, Piece};
use row::InvocationRow;

use super::codes::decode_error;
use super::{During, Store, StoreError};
use crate::model::{InvocationFilter, InvocationId, InvocationRecord};

/// How many rows are tried against what no index answers, piece after piece until the page is full. Together they bound
/// what one request costs: some 10 ms. Small pieces first, because most filters are not that rare.
const PIECES: [u32; 3] = [500, 1_500, 4_000];

/// The same where rows are read in the order of the table, which costs an eighth of finding each by an index.
const PIECES_IN_ORDER: [u32; 4] = [500, 2_500, 12_000, 65_000];

/// The columns of [`InvocationRow`], followed by the rest of a query. A macro, because the checked queries take literals
/// only. The history of a deleted function or chain is not seen, because every query joins its subject.
macro_rules! select {
    ($($rest:literal)+; $($argument:expr),+) => {
        sqlx::query_as!(
            InvocationRow,
            "SELECT f.name AS function, i.id, i.version, i.trigger_code, i.status, i.start_code, i.received_us, \
                    i.finished_us, i.queue_us, i.start_us, i.send_us, i.run_us, i.recv_us, i.total_us, \
                    i.request_bytes, i.response_bytes, i.attempts, i.error, i.trace, i.counters FROM "
                $(+ $rest)+,
            $($argument),+
        )
    };
}

/// The rows of a piece, newest first, that pass the whole filter; `$index` is what they are found by.
macro_rules! rows {
    ($store:expr, $piece:expr, $index:literal, $path:literal) => {{
        let piece = $piece;
        let (before, from) = (piece.before.as_slice(), piece.from.as_slice());
        select!(
            "subjects f CROSS JOIN invocations i " $index " ON i.function_id = f.id \
             WHERE f.id = ?1 AND i.id < ?2 AND i.id >= ?3 AND (?5 IS NULL OR i.status = ?5) \
             AND (?6 IS NULL OR i.start_code = ?6) AND (?7 IS NULL OR i.version = ?7) \
             AND (?8 IS NULL OR i.trigger_code = ?8) AND (?9 IS NULL OR i.total_us >= ?9) \
             AND (?10 IS NULL OR i.total_us <= ?10)" $path " ORDER BY i.id DESC LIMIT ?4";
            piece.function,
            before,
            from,
            piece.limit,
            piece.filter.status,
            piece.filter.start,
            piece.filter.version,
            piece.filter.trigger,
            piece.filter.min_us,
            piece.filter.max_us
        )
        .fetch_all($store.readers())
        .await
    }};
}

/// The last row of the piece that begins before `?2`, and the one behind it if there is one.
macro_rules! end {
    ($store:expr, $piece:expr, $last:expr, $index:literal, $path:literal $(, $argument:expr)?) => {{
        let before = $piece.before.as_slice();
        sqlx::query_scalar!(
            "SELECT i.id FROM invocations i " + $index + " WHERE i.function_id = ?1 AND i.id < ?2" + $path
                + " ORDER BY i.id DESC LIMIT 2 OFFSET ?3",
            $piece.function,
            before,
            $last
            $(, $argument)?
        )
        .fetch_all($store.readers())
        .await
    }};
}

/// A page of invocations.
#[derive(Debug)]
pub(crate) struct Found {
    /// Newest first.
    pub items: Vec<InvocationRecord>,
    /// Where to continue; none if there is nothing more.
    pub next: Option<InvocationId>,
}

impl Store {
    /// A function's invocations older than `before` that pass the filter, newest first, at most `limit` of them. Where no
    /// index answers the filter, a page may end early: it is then that far that the search came.
    pub(crate) async fn invocations(
        &self,
        function: i64,
        filter: &InvocationFilter,
        before: Option<InvocationId>,
        limit: u32,
    ) -> Result<Found, StoreError> {
        let pieces: &[u32] = match By::best(filter) {
            (By::Time, _) => &PIECES_IN_ORDER,
            _ => &PIECES,
        };
        self.invocations_in(pieces, function, filter, before, limit)
            .await
    }

    /// The same with the lengths of the pieces.
    pub(super) async fn invocations_in(
        &self,
        pieces: &[u32],
        function: i64,
        filter: &InvocationFilter,
        before: Option<InvocationId>,
        limit: u32,
    ) -> Result<Found, StoreError> {
        let (by, whole) = By::best(filter);
        // The default sorts after every UUIDv7: those have a 7 where this has an f.
        let before = before.map_or(Uuid::max(), |id| id.0);
        let mut piece = Piece {
            function,
            filter: Columns::of(filter),
            before: before.as_bytes().to_vec(),
            from: Uuid::nil().as_bytes().to_vec(),
            // One more than requested shows whether there is another page.
            limit: limit.saturating_add(1),
        };
        let work = async {
            let mut items = Vec::new();
            let pieces = if whole { &[u32::MAX] } else { pieces };
            for length in pieces {
                let ends = if whole {
                    Vec::new()
                } else {
                    self.end_of(by, &piece, *length).await?
                };
                piece.from = match ends.first() {
                    Some(last) => last.clone(),
                    None => Uuid::nil().as_bytes().to_vec(),
                };
                for row in self.rows_of(by, &piece).await? {
                    items.push(row.read()?);
                }
                if items.len() > limit as usize {
                    items.truncate(limit as usize);
                    let next = items.last().map(|record: &InvocationRecord| record.id);
                    return Ok(Found { items, next });
                }
                let [last, _] = ends.as_slice() else {
                    return Ok(Found { items, next: None });
                };
                piece.before.clone_from(last);
                piece.limit = limit.saturating_add(1) - items.len() as u32;
            }
            let searched = Uuid::from_slice(&piece.before).map_err(decode_error)?;
            Ok(Found {
                items,
                next: Some(InvocationId(searched)),
            })
        };
        work.await.during("list invocations")
    }

    async fn rows_of(&self, by: By, piece: &Piece) -> Result<Vec<InvocationRow>, sqlx::Error> {
        match by {
            By::Unsuccessful => rows!(
                self,
                piece,
                "INDEXED BY invocations_unsuccessful",
                " AND i.status <> 3 AND i.status = ?5"
            ),
            By::Slow => rows!(
                self,
                piece,
                "INDEXED BY invocations_slow",
                " AND i.total_us >= 1000000"
            ),
            By::Cold => rows!(
                self,
                piece,
                "INDEXED BY invocations_cold",
                " AND i.start_code <> 1 AND i.start_code = ?6"
            ),
            By::Version => rows!(
                self,
                piece,
                "INDEXED BY invocations_by_version",
                " AND i.version = ?7"
            ),
            By::Time => rows!(self, piece, "", ""),
        }
    }

    /// The last row of a batch of this many rows, and the next one; none if there are fewer.
    async fn end_of(
        &self,
        by: By,
        piece: &Piece,
        length: u32,
    ) -> Result<Vec<Vec<u8>>, sqlx::Error> {
        let last = length - 1;
        let filter = &piece.filter;
        match by {
            By::Unsuccessful => {
                end!(
                    self,
                    piece,
                    last,
                    "INDEXED BY invocations_unsuccessful",
                    " AND i.status <> 3 AND i.status = ?4",
                    filter.status
                )
            }
            By::Slow => end!(
                self,
                piece,
                last,
                "INDEXED BY invocations_slow",
                " AND i.total_us >= 1000000"
            ),
            By::Cold => {
                end!(
                    self,
                    piece,
                    last,
                    "INDEXED BY invocations_cold",
                    " AND i.start_code <> 1 AND i.start_code = ?4",
                    filter.start
                )
            }
            By::Version => end!(
                self,
                piece,
                last,
                "INDEXED BY invocations_by_version",
                " AND i.version = ?4",
                filter.version
            ),
            By::Time => end!(self, piece, last, "", ""),
        }
    }

    /// One invocation with its log lines.
    pub(crate) async fn invocation(
        &self,
        id: InvocationId,
    ) -> Result<Option<InvocationRecord>, StoreError> {
        let key = id.0.as_bytes().as_slice();
        let row = select!(
            "invocations i CROSS JOIN subjects f ON f.id = i.function_id WHERE i.id = ?1";
            key
        )
        .fetch_optional(self.readers())
        .await
        .during("find an invocation")?;
        let Some(row) = row else {
            return Ok(None);
        };
        let mut record = row.read().during("read an invocation")?;
        record.logs = self.logs_of(id).await?;
        Ok(Some(record))
    }
}
