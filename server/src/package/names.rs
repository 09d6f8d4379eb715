//! Names of archive entries: validates hostile bytes as plain relative paths.

use super::error::{PackageError, quoted};

/// Longest path component: what ext4, xfs and tmpfs take.
const MAX_COMPONENT_BYTES: usize = 255;
/// Longest whole path, well below PATH_MAX with the store's own directory before it.
const MAX_PATH_BYTES: usize = 1024;
/// Deepest nesting: bounds the recursion of later tree walks.
const MAX_DEPTH: usize = 32;

/// A checked entry name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntryName {
    /// Components joined by `/`, none of them empty, `.` or `..`. Empty for an entry that names the root itself.
    pub path: String,
    /// Whether the name ends in `/`.
    pub is_dir: bool,
}

/// Checks a raw name. `./` is dropped, everything else that is not a plain component is refused.
pub(super) fn check(raw: &[u8]) -> Result<EntryName, PackageError> {
    let refuse = |reason| PackageError::Name {
        entry: quoted(raw),
        reason,
    };
    let name = std::str::from_utf8(raw).map_err(|_| refuse("is not UTF-8"))?;
    if name.is_empty() {
        return Err(refuse("has no name"));
    }
    if name.len() > MAX_PATH_BYTES {
        return Err(refuse("is longer than 1024 bytes"));
    }
    if name.chars().any(|c| c.is_ascii_control()) {
        return Err(refuse("contains a NUL or another control character"));
    }
    if name.contains('\\') {
        return Err(refuse("contains a backslash"));
    }
    if name.starts_with('/') {
        return Err(refuse("is an absolute path"));
    }
    let bytes = name.as_bytes();
    if bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' {
        return Err(refuse("starts with a drive letter"));
    }
    let (name, is_dir) = match name.strip_suffix('/') {
        Some(directory) => (directory, true),
        None => (name, false),
    };
    let mut components = Vec::new();
    for component in name.split('/') {
        match component {
            "." => {}
            ".." => return Err(refuse("leaves the root with \"..\"")),
            "" => return Err(refuse("has an empty component")),
            long if long.len() > MAX_COMPONENT_BYTES => {
                return Err(refuse("has a component longer than 255 bytes"));
            }
            plain => components.push(plain),
        }
    }
    if components.len() > MAX_DEPTH {
        return Err(refuse("is more than 32 levels deep"));
    }
    if components.is_empty() && !is_dir {
        return Err(refuse("names no file"));
    }
    Ok(EntryName {
        path: components.join("/"),
        is_dir,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(raw: &str) -> String {
        check(raw.as_bytes()).unwrap().path
    }

    #[test]
    fn plain_names_pass() {
        assert_eq!(path("main.py"), "main.py");
        assert_eq!(path("./pkg/./mod.py"), "pkg/mod.py");
        assert_eq!(path("dir/"), "dir");
        assert!(check(b"dir/").unwrap().is_dir);
        assert_eq!(path("./"), "");
        assert_eq!(path("späß/..hidden"), "späß/..hidden");
    }

    #[test]
    fn hostile_names_are_refused() {
        let long = "a".repeat(256);
        let longer = "ab/".repeat(400);
        let deep = "a/".repeat(33);
        for raw in [
            "",
            "..",
            "../x",
            "a/../x",
            "a/..",
            "/etc/passwd",
            "//x",
            "a//b",
            "C:x",
            "c:\\x",
            "a\\..\\x",
            "a\0b",
            "a\nb",
            ".",
            &long,
            &longer,
            &deep,
        ] {
            let error = check(raw.as_bytes()).expect_err(raw);
            assert_eq!(error.code(), "unsafe_name", "{raw}");
        }
        assert_eq!(check(b"\xff.py").unwrap_err().code(), "unsafe_name");
    }
}
