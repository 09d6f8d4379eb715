//! Parses the edits of the code page's form: all of them as JSON with scripts, those of one file without.

use std::io;
use std::path::Path;

use crate::http::spec;
use crate::model::{FileEdit, InvalidField};
use crate::package::MAX_EDITS;
use crate::package::browse::{self, Content};

use super::code_files::MAX_EDITED_BYTES;
use super::form::Form;

/// What the form asks for, as it was sent.
pub fn read(form: &Form) -> Result<Vec<FileEdit>, InvalidField> {
    let sent = form.text("edits");
    let edits = match sent {
        "" => vec![single(form)],
        json => serde_json::from_str(json).map_err(|error| InvalidField {
            field: "edits".to_owned(),
            value: "(hidden)".to_owned(),
            rule: format!("must be a list of edits: {error}"),
        })?,
    };
    if edits.len() > MAX_EDITS {
        return Err(InvalidField {
            field: "code".to_owned(),
            value: edits.len().to_string(),
            rule: format!(
                "at most {MAX_EDITS} files can be changed at once; upload a zip archive instead"
            ),
        });
    }
    for edit in &edits {
        if edit.to.as_deref().is_some_and(|to| to.trim().is_empty()) {
            return Err(spec::invalid(
                "path",
                &"".into(),
                "give the file a name, such as helper.py",
            ));
        }
        if let Some(text) = &edit.text
            && text.len() as u64 > MAX_EDITED_BYTES
        {
            return Err(InvalidField {
                field: "code".to_owned(),
                value: edit.to.clone().unwrap_or_default(),
                rule: format!(
                    "files larger than {} cannot be edited here; upload the file instead",
                    hearth_web::format::bytes(MAX_EDITED_BYTES)
                ),
            });
        }
    }
    Ok(edits)
}

/// The one file of a form without scripts.
fn single(form: &Form) -> FileEdit {
    let from = Some(form.text("opened"))
        .filter(|opened| !opened.is_empty())
        .map(str::to_owned);
    if !form.text("remove").is_empty() {
        return FileEdit {
            from,
            ..FileEdit::default()
        };
    }
    FileEdit {
        from,
        to: Some(form.trimmed("path")),
        // A file that is no text has no such field.
        text: form
            .all("code")
            .next()
            .map(|code| code.replace("\r\n", "\n")),
    }
}

/// Drops what changes nothing, and gives files the line ends back that they had, blocking.
pub fn settle(base: &Path, edits: Vec<FileEdit>) -> io::Result<Vec<FileEdit>> {
    let mut settled = Vec::with_capacity(edits.len());
    for mut edit in edits {
        if let (Some(from), Some(text)) = (&edit.from, &edit.text)
            && let Some(Content::Text(before)) = browse::read(base, from, MAX_EDITED_BYTES)?
        {
            let text = match before.contains("\r\n") {
                true => text.replace('\n', "\r\n"),
                false => text.clone(),
            };
            edit.text = (text != before).then_some(text);
        }
        let moved = edit.from != edit.to;
        if moved || edit.text.is_some() {
            settled.push(edit);
        }
    }
    Ok(settled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::console::form::{CodeFields, encoded};

    fn edit(from: Option<&str>, to: Option<&str>, text: Option<&str>) -> FileEdit {
        FileEdit {
            from: from.map(Into::into),
            to: to.map(Into::into),
            text: text.map(Into::into),
        }
    }

    #[tokio::test]
    async fn a_form_without_scripts_edits_one_file() {
        for (body, expected) in [
            (
                "opened=a.py&path=a.py&code=x%0D%0Ay",
                edit(Some("a.py"), Some("a.py"), Some("x\ny")),
            ),
            (
                "opened=&path=+new.py+&code=x",
                edit(None, Some("new.py"), Some("x")),
            ),
            (
                "opened=a.bin&path=b.bin",
                edit(Some("a.bin"), Some("b.bin"), None),
            ),
            (
                "opened=a.py&path=a.py&code=x&remove=true",
                edit(Some("a.py"), None, None),
            ),
        ] {
            assert_eq!(
                read(&encoded::<CodeFields>(body).await),
                Ok(vec![expected]),
                "{body}"
            );
        }
        let error =
            read(&encoded::<CodeFields>("opened=a.py&path=&code=x").await).expect_err("refused");
        assert_eq!(error.field, "path");
    }

    #[tokio::test]
    async fn scripts_send_all_edits() {
        let body = "edits=%5B%7B%22from%22%3A%22a%22%7D%2C%7B%22to%22%3A%22b%22%2C%22text%22%3A%22%22%7D%5D";
        assert_eq!(
            read(&encoded::<CodeFields>(body).await),
            Ok(vec![
                edit(Some("a"), None, None),
                edit(None, Some("b"), Some(""))
            ])
        );
        for bad in ["edits=%7B%7D", "edits=%5B%7B%22mode%22%3A1%7D%5D"] {
            assert_eq!(
                read(&encoded::<CodeFields>(bad).await)
                    .expect_err("refused")
                    .field,
                "edits",
                "{bad}"
            );
        }
    }

    #[test]
    fn what_changes_nothing_is_dropped_and_line_ends_stay() {
        let base = tempfile::tempdir().expect("a directory");
        std::fs::write(base.path().join("dos.py"), "a\r\nb\r\n").expect("a file");
        std::fs::write(base.path().join("unix.py"), "a\n").expect("a file");
        let settled = settle(
            base.path(),
            vec![
                edit(Some("dos.py"), Some("dos.py"), Some("a\nb\n")),
                edit(Some("unix.py"), Some("unix.py"), Some("a\n")),
                edit(Some("unix.py"), Some("unix.py"), None),
            ],
        )
        .expect("settled");
        assert_eq!(settled, []);
        let settled = settle(
            base.path(),
            vec![
                edit(Some("dos.py"), Some("dos.py"), Some("a\nc\n")),
                edit(Some("unix.py"), Some("moved.py"), Some("a\n")),
            ],
        )
        .expect("settled");
        assert_eq!(
            settled,
            [
                edit(Some("dos.py"), Some("dos.py"), Some("a\r\nc\r\n")),
                edit(Some("unix.py"), Some("moved.py"), None),
            ]
        );
    }
}
