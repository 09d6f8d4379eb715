//! Files with benchmarks, found by their names.

use std::fs;
use std::path::Path;

use super::stage::StageError;

/// Directories whose scripts all have benchmarks.
const DIRECTORIES: [&str; 3] = ["bench", "benchmark", "benchmarks"];

/// Deepest directory that is looked into.
const DEPTH_MAX: usize = 16;

/// Paths of a tree's files that are wanted, in order. `is_wanted` gets the path, the name, and whether the file is below one of
/// [`DIRECTORIES`], or below `from` if that is one directory of the tree. Hidden directories and those named in `but` are left out.
///
/// # Errors
/// A directory that cannot be read.
pub(super) fn find(
    tree: &Path,
    from: &str,
    but: &[&str],
    is_wanted: &dyn Fn(&Path, &str, bool) -> bool,
) -> Result<Vec<String>, StageError> {
    let mut search = Search {
        but,
        is_wanted,
        found: Vec::new(),
    };
    let from = from.trim_matches('/');
    let (directory, prefix) = match from {
        "" | "." => (tree.to_owned(), String::new()),
        from => (tree.join(from), format!("{from}/")),
    };
    search.directory(&directory, &prefix, !prefix.is_empty(), DEPTH_MAX)?;
    search.found.sort();
    Ok(search.found)
}

struct Search<'a> {
    but: &'a [&'a str],
    is_wanted: &'a dyn Fn(&Path, &str, bool) -> bool,
    found: Vec<String>,
}

impl Search<'_> {
    fn directory(
        &mut self,
        directory: &Path,
        prefix: &str,
        is_all: bool,
        depth: usize,
    ) -> Result<(), StageError> {
        let failed = |error| StageError::File(directory.to_owned(), error);
        if depth == 0 {
            return Ok(());
        }
        for entry in fs::read_dir(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let below = format!("{prefix}{name}");
            if entry.file_type().map_err(failed)?.is_dir() {
                if self.but.contains(&name.as_ref()) || name.starts_with('.') {
                    continue;
                }
                let is_all = is_all || DIRECTORIES.contains(&name.as_ref());
                self.directory(&path, &format!("{below}/"), is_all, depth - 1)?;
            } else if (self.is_wanted)(&path, &name, is_all) {
                self.found.push(below);
            }
        }
        Ok(())
    }
}
