//! Checks that the upload contains the handler's module.

use super::error::PackageError;
use super::tree::Tree;

/// How many of the files that are there a refusal lists.
const LISTED_FILES: usize = 5;

/// Whether a single file can be this module: `[A-Za-z0-9_-]`, 1 to 200 of them.
pub(super) fn is_simple(module: &str) -> bool {
    (1..=200).contains(&module.len())
        && module
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Whether `tree` holds the file that `module` is loaded from.
pub(super) fn check(module: &str, extension: &str, tree: &Tree<'_>) -> Result<(), PackageError> {
    let base = match extension {
        // Python separates packages by dots; Lambda takes slashes as well.
        "py" => module.replace('.', "/"),
        _ => module.to_owned(),
    };
    let expected = format!("{base}.{extension}");
    let present = match extension {
        "py" => {
            tree.has(&expected)
                || tree.has(&format!("{base}/__init__.py"))
                || tree.has(&format!("{base}.pyc"))
                || has_native_module(tree, &base)
        }
        _ => ["js", "mjs", "cjs"]
            .iter()
            .any(|ext| tree.has(&format!("{base}.{ext}"))),
    };
    if present {
        return Ok(());
    }
    Err(PackageError::MissingModule {
        expected,
        found: describe(tree),
    })
}

/// `main.abi3.so`, `main.cpython-311-x86_64-linux-gnu.so`.
fn has_native_module(tree: &Tree<'_>, base: &str) -> bool {
    tree.files().any(|file| {
        file.strip_prefix(base).is_some_and(|rest| {
            rest.starts_with('.') && rest.ends_with(".so") && !rest.contains('/')
        })
    })
}

/// Some of what is there, the root's files first: a whole project in a directory of its own is the usual mistake.
fn describe(tree: &Tree<'_>) -> String {
    let mut files: Vec<&str> = tree.files().collect();
    if files.is_empty() {
        return "no files".to_owned();
    }
    files.sort_by_key(|file| (file.matches('/').count(), *file));
    let mut listed: Vec<String> = files
        .iter()
        .take(LISTED_FILES)
        .map(|file| super::error::quoted(file.as_bytes()))
        .collect();
    if files.len() > LISTED_FILES {
        listed.push(format!("{} more", files.len() - LISTED_FILES));
    }
    listed.join(", ")
}
