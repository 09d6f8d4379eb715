//! The runtime directory as it is installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::language::language;

/// The runtime directory, assembled once a process from this build's extension.
pub fn runtime_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let binary = std::env::current_exe().expect("own path");
        let profile_dir = binary
            .ancestors()
            .nth(2)
            .expect("binaries lie below the profile");
        // Where cargo has put it when it built this binary; one level up it may be of an earlier build.
        let built = profile_dir.join("deps");
        let dest = profile_dir.join(format!(
            "{}-test-{}",
            language().package,
            std::process::id()
        ));
        let package = language().crate_dir().join("package.sh");
        let status = Command::new(package)
            .arg(&built)
            .arg(&dest)
            .status()
            .expect("package.sh");
        assert!(status.success(), "package.sh: {status}");
        remove_at_exit(&dest);
        dest
    })
}

/// Statics are not dropped: the directory goes with a child that outlives this process by a moment.
fn remove_at_exit(dir: &Path) {
    let script = "cat >/dev/null; rm -rf -- \"$0\"";
    let child = Command::new("/bin/sh")
        .args(["-c", script])
        .arg(dir)
        .stdin(Stdio::piped())
        .spawn()
        .expect("sh");
    // Its stdin closes when this process ends.
    std::mem::forget(child);
}
