//! Reading log lines.

use uuid::Uuid;

use super::codes::{StoredCode, decode_error, timestamp};
use super::{During, Store, StoreError};
use crate::model::{FoundLine, InvocationId, LogEntry, LogLine, LogStream};

/// What SQLite puts before and behind what was found. Unicode keeps these two for a program's own use: in no text.
const MARKS: (char, char) = ('\u{fdd0}', '\u{fdd1}');

struct FoundRow {
    seq: i64,
    invocation: Option<Vec<u8>>,
    time_us: i64,
    stream: i64,
    text: String,
    marked: String,
}

impl FoundRow {
    fn read(self) -> Result<FoundLine, sqlx::Error> {
        let row = LogRow {
            invocation: self.invocation,
            time_us: self.time_us,
            stream: self.stream,
            text: self.text,
        };
        Ok(FoundLine {
            key: self.seq,
            entry: row.read()?,
            pieces: pieces(&self.marked),
        })
    }
}

/// Takes a marked text apart.
fn pieces(marked: &str) -> Vec<(bool, String)> {
    let mut pieces = Vec::new();
    let mut push = |found, text: &str| {
        let text = text.replace([MARKS.0, MARKS.1], "");
        if !text.is_empty() {
            pieces.push((found, text));
        }
    };
    let mut rest = marked;
    while let Some((before, after)) = rest.split_once(MARKS.0) {
        let (found, behind) = after.split_once(MARKS.1).unwrap_or((after, ""));
        push(false, before);
        push(true, found);
        rest = behind;
    }
    push(false, rest);
    pieces
}

struct LogRow {
    invocation: Option<Vec<u8>>,
    time_us: i64,
    stream: i64,
    text: String,
}

impl LogRow {
    fn read(self) -> Result<LogEntry, sqlx::Error> {
        let invocation = match self.invocation {
            Some(id) => Some(InvocationId(Uuid::from_slice(&id).map_err(decode_error)?)),
            None => None,
        };
        Ok(LogEntry {
            invocation,
            line: LogLine {
                time: timestamp(self.time_us)?,
                stream: LogStream::from_code(self.stream)?,
                text: self.text,
            },
        })
    }
}

impl Store {
    /// The newest `limit` lines of a function, oldest first; lines of the same time in the order they were stored in.
    pub(crate) async fn newest_logs(
        &self,
        function: i64,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let rows = sqlx::query_as!(
            LogRow,
            "SELECT invocation, time_us, stream, text FROM logs WHERE function_id = ?1 \
             ORDER BY time_us DESC, seq DESC LIMIT ?2",
            function,
            limit
        )
        .fetch_all(self.readers())
        .await
        .during("read a function's log")?;
        rows.into_iter()
            .rev()
            .map(LogRow::read)
            .collect::<Result<_, _>>()
            .during("read a log line")
    }

    /// The lines that a query of the search index finds, newest first, from those stored before `before`.
    pub(crate) async fn search_logs(
        &self,
        query: &str,
        invocation: Option<InvocationId>,
        before: i64,
        limit: u32,
    ) -> Result<Vec<FoundLine>, StoreError> {
        let (open, close) = (MARKS.0.to_string(), MARKS.1.to_string());
        let rows = match invocation {
            None => {
                sqlx::query_as!(
                    FoundRow,
                    r#"SELECT l.seq AS "seq!", l.invocation, l.time_us AS "time_us!", l.stream AS "stream!",
                              l.text AS "text!", highlight(log_search, 1, ?4, ?5) AS "marked!: String"
                       FROM log_search s CROSS JOIN logs l ON l.seq = s.rowid
                       WHERE log_search MATCH ?1 AND s.rowid < ?2 ORDER BY s.rowid DESC LIMIT ?3"#,
                    query,
                    before,
                    limit,
                    open,
                    close
                )
                .fetch_all(self.readers())
                .await
            }
            // Its lines stand together: between the first and the last there are few others.
            Some(id) => {
                let id = id.0.as_bytes().as_slice();
                sqlx::query_as!(
                    FoundRow,
                    r#"SELECT l.seq AS "seq!", l.invocation, l.time_us AS "time_us!", l.stream AS "stream!",
                              l.text AS "text!", highlight(log_search, 1, ?4, ?5) AS "marked!: String"
                       FROM log_search s CROSS JOIN logs l ON l.seq = s.rowid
                       WHERE log_search MATCH ?1 AND s.rowid < ?2
                         AND s.rowid >= (SELECT min(seq) FROM logs WHERE invocation = ?6)
                         AND s.rowid <= (SELECT max(seq) FROM logs WHERE invocation = ?6)
                         AND l.invocation = ?6
                       ORDER BY s.rowid DESC LIMIT ?3"#,
                    query,
                    before,
                    limit,
                    open,
                    close,
                    id
                )
                .fetch_all(self.readers())
                .await
            }
        };
        rows.during("search a function's log")?
            .into_iter()
            .map(FoundRow::read)
            .collect::<Result<_, _>>()
            .during("read a log line")
    }

    /// The first `limit` lines of a function's invocation, oldest first.
    pub(crate) async fn invocation_logs(
        &self,
        function: i64,
        id: InvocationId,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let id = id.0.as_bytes().as_slice();
        let rows = sqlx::query_as!(
            LogRow,
            "SELECT invocation, time_us, stream, text FROM logs \
             WHERE invocation = ?1 AND +function_id = ?2 ORDER BY time_us, seq LIMIT ?3",
            id,
            function,
            limit
        )
        .fetch_all(self.readers())
        .await
        .during("read an invocation's log")?;
        rows.into_iter()
            .map(LogRow::read)
            .collect::<Result<_, _>>()
            .during("read a log line")
    }

    /// An invocation's lines, oldest first; lines of the same time in the order they were stored in.
    pub(super) async fn logs_of(&self, id: InvocationId) -> Result<Vec<LogLine>, StoreError> {
        let id = id.0.as_bytes().as_slice();
        let rows = sqlx::query_as!(
            LogRow,
            "SELECT invocation, time_us, stream, text FROM logs WHERE invocation = ?1 ORDER BY time_us, seq",
            id
        )
        .fetch_all(self.readers())
        .await
        .during("read an invocation's log")?;
        rows.into_iter()
            .map(|row| row.read().map(|entry| entry.line))
            .collect::<Result<_, _>>()
            .during("read a log line")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_line_is_taken_apart() {
        let (open, close) = MARKS;
        let marked = format!("a {open}b{close} c{open}d{close}");
        let expected = [(false, "a "), (true, "b"), (false, " c"), (true, "d")];
        let found = pieces(&marked);
        assert_eq!(found.len(), expected.len());
        for ((is, text), (expected, part)) in found.iter().zip(expected) {
            assert_eq!((*is, text.as_str()), (expected, part));
        }
        // A line that holds the marks itself loses them and nothing else.
        let odd = pieces(&format!("{close}x{open}y{open}z"));
        let whole: String = odd.into_iter().map(|(_, text)| text).collect();
        assert_eq!(whole, "xyz");
    }
}
