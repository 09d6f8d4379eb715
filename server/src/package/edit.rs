//! Creates a package from an existing one: some files written, moved or removed, the others copied.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::model::FileEdit;

use super::browse::{self, FileMeta};
use super::error::{PackageError, quoted};
use super::tree::Tree;
use super::{MAX_ENTRIES, MAX_UNPACKED_BYTES, bytecode, names};

/// Most files that one change may touch: bounds what a request makes the server compare and write.
pub const MAX_EDITS: usize = 500;

/// A file as it shall be.
struct Target<'e> {
    /// The file of the base whose content it keeps.
    source: Option<(&'e str, FileMeta)>,
    /// Its new text.
    text: Option<&'e str>,
    executable: bool,
}

/// Fills `tree` with the files of `base`, changed as `edits` say.
pub(super) fn apply(
    base: &Path,
    edits: &[FileEdit],
    tree: &mut Tree<'_>,
) -> Result<(), PackageError> {
    if edits.len() > MAX_EDITS {
        return Err(refuse(
            &format!("{} files", edits.len()),
            "are too many for one change; upload a zip archive instead",
        ));
    }
    let browse::Listing {
        mut files,
        empty_directories,
    } = browse::walk(base)?;
    let targets = targets(&mut files, edits)?;
    if files.len() + targets.len() > MAX_ENTRIES {
        return Err(PackageError::TooManyEntries {
            found: (files.len() + targets.len()) as u64,
            limit: MAX_ENTRIES,
        });
    }
    let mut left = MAX_UNPACKED_BYTES;
    for directory in empty_directories {
        tree.add_directory(&directory)?;
    }
    for (path, meta) in &files {
        copy(base, path, path, *meta, tree, &mut left)?;
    }
    for (path, target) in targets {
        match target {
            Target {
                text: Some(text),
                executable,
                ..
            } => {
                spend(&mut left, text.len() as u64)?;
                let mut file = create(tree, &path, executable)?;
                file.write_all(text.as_bytes())?;
                file.finish();
            }
            Target {
                source: Some((source, meta)),
                ..
            } => copy(base, source, &path, meta, tree, &mut left)?,
            // `targets` makes none without either.
            Target { .. } => {}
        }
    }
    Ok(())
}

/// Takes the edited files out of `files`, and says what shall be where.
fn targets<'e>(
    files: &mut BTreeMap<String, FileMeta>,
    edits: &'e [FileEdit],
) -> Result<BTreeMap<String, Target<'e>>, PackageError> {
    let mut targets = BTreeMap::new();
    let mut wanted = Vec::new();
    for edit in edits {
        let source = match edit.from.as_deref() {
            None => None,
            Some(from) => {
                let meta = files
                    .remove(from)
                    .ok_or_else(|| refuse(from, "does not exist or is edited twice"))?;
                Some((from, meta))
            }
        };
        match (&edit.to, &edit.text) {
            (Some(to), _) if source.is_none() && edit.text.is_none() => {
                return Err(refuse(to, "is new but has no text"));
            }
            (Some(to), text) => wanted.push((to.as_str(), source, text.as_deref())),
            (None, None) if source.is_some() => {}
            (None, _) => return Err(refuse("", "has neither an old nor a new path")),
        }
    }
    // After all are taken out: files may change places.
    for (to, source, text) in wanted {
        let name = names::check(to.as_bytes()).map_err(|error| match error {
            PackageError::Name { reason, .. } => refuse(to, reason),
            other => other,
        })?;
        if name.is_dir {
            return Err(refuse(to, "ends with a slash"));
        }
        if bytecode::is_reserved(&name.path) {
            return Err(refuse(
                to,
                "is in __pycache__, which holds byte code; use another directory",
            ));
        }
        if files.contains_key(&name.path) {
            return Err(refuse(to, "already exists"));
        }
        let target = Target {
            source,
            text,
            executable: source.is_some_and(|(_, meta)| meta.executable),
        };
        if targets.insert(name.path, target).is_some() {
            return Err(refuse(to, "already exists"));
        }
    }
    Ok(targets)
}

fn copy(
    base: &Path,
    from: &str,
    to: &str,
    meta: FileMeta,
    tree: &mut Tree<'_>,
    left: &mut u64,
) -> Result<(), PackageError> {
    spend(left, meta.bytes)?;
    let (source, _) = browse::open(base, from)?
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{from:?} is gone")))?;
    let mut file = create(tree, to, meta.executable)?;
    io::copy(&mut source.take(meta.bytes), &mut file)?;
    file.finish();
    Ok(())
}

fn create<'t>(
    tree: &'t mut Tree<'_>,
    path: &str,
    executable: bool,
) -> Result<super::tree::NewFile<'t>, PackageError> {
    tree.create(path, executable).map_err(|error| match error {
        PackageError::Duplicate { .. } => refuse(path, "is both a file and a directory"),
        other => other,
    })
}

fn spend(left: &mut u64, bytes: u64) -> Result<(), PackageError> {
    *left = left.checked_sub(bytes).ok_or(PackageError::TooLarge {
        limit: MAX_UNPACKED_BYTES,
    })?;
    Ok(())
}

fn refuse(path: &str, reason: &'static str) -> PackageError {
    PackageError::Edit {
        path: quoted(path.as_bytes()),
        reason,
    }
}
