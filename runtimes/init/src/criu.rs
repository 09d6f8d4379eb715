//! What the host process passes to `hearth-init` about CRIU: where the program is, what to dump, what to restore.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use crate::fields_of;

/// A CRIU that was found to work, with its libraries where they are not the system's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CriuProgram {
    /// Host directory that everything below is relative to. Opened on the host and reached by descriptor from inside.
    pub dir: PathBuf,
    /// The program.
    pub program: String,
    /// Dynamic loader and library directory of a private copy; a system's own CRIU needs neither.
    pub loader: Option<(String, String)>,
    /// Directory of libraries without code that a private copy's loader takes for a restore in place of some that it has
    /// no use for then, and that take longer to load than all the others.
    pub light: Option<String>,
    /// What CRIU found out about this kernel (`criu.kdat`), so that it need not ask at every run.
    pub kdat: PathBuf,
}

/// An image to restore a template from.
#[derive(Debug, Clone)]
pub struct RestoreSpec {
    /// Host directory of CRIU's image files.
    pub images: PathBuf,
}

/// The template's descriptors that lead out of the sandbox, by inode: CRIU leaves them out of an image, and gets others
/// in their place for a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outside {
    /// The template's end of the control socket.
    pub control: u64,
    /// The pipe behind its standard output.
    pub stdout: u64,
    /// The pipe behind its standard error.
    pub stderr: u64,
}

/// The numbers that stand for them in every image, whatever they were: higher than an inode of a pipe or a socket gets on a
/// machine that has not made four thousand million of them.
pub const IN_IMAGE: Outside = Outside {
    control: 0xffff_fff0,
    stdout: 0xffff_fff1,
    stderr: 0xffff_fff2,
};

/// Input of `hearth-init dump`, in a memfd. Descriptor 3 is a pidfd of the sandbox's PID 1.
#[derive(Debug, Clone)]
pub struct DumpSpec {
    /// Which CRIU.
    pub criu: CriuProgram,
    /// Existing, empty host directory for the image files.
    pub images: PathBuf,
    /// Existing host directory where CRIU writes its log.
    pub work: PathBuf,
    /// What is not part of the image.
    pub outside: Outside,
    /// Inode of the server's end of the control socket.
    pub control_peer: u64,
}

fields_of!(CriuProgram {
    dir,
    program,
    loader,
    light,
    kdat,
});
fields_of!(RestoreSpec { images });
fields_of!(Outside {
    control,
    stdout,
    stderr,
});
fields_of!(DumpSpec {
    criu,
    images,
    work,
    outside,
    control_peer,
});

/// CRIU's command that waits for a request on the socket whose number follows, and restores.
pub const SERVE: &str = "swrk";
/// Directory in that of a restoring CRIU where it writes its log.
pub const WORK: &str = "work";
/// Directory beside it for the image of a pre-warmed sandbox.
pub const IMAGE: &str = "image";
/// A link beside that which leads there: CRIU takes no path to an image but a link.
pub const IMAGE_LINK: &str = "image-link";
/// CRIU's log in a work directory.
pub const RESTORE_LOG: &str = "restore.log";
/// The same of a dump.
pub const DUMP_LOG: &str = "dump.log";
/// Where CRIU looks for its notes on the kernel.
pub const KDAT: &str = "run/criu.kdat";
/// Longest piece of a log that is looked at, from its end. Protects the reader from a log of any length.
pub const LOG_TAIL: usize = 16 * 1024;
/// Most lines shown of a log, and the most characters of each.
const ERROR_LINES: (usize, usize) = (4, 240);
/// Errors that come in every run here and stop nothing: a limit that only the host may raise, a score that is inherited
/// anyway, and the end of a helper.
const HARMLESS: [&str; 3] = [
    "RLIMIT_NOFILE",
    "0/oom_score_adj",
    "cgroupd: recv req error",
];

/// What a CRIU that did not finish said last: its errors, or else its last lines of any kind; on one line. Blocking.
///
/// # Errors
/// When there is no log, or it cannot be read.
pub fn last_words(log: &File) -> io::Result<String> {
    let from = log.metadata()?.len().saturating_sub(LOG_TAIL as u64);
    let mut tail = vec![0; LOG_TAIL];
    let length = log.read_at(&mut tail, from)?;
    tail.truncate(length);
    let tail = String::from_utf8_lossy(&tail);
    let errors = last_errors(&tail);
    if errors.is_empty() {
        return Ok(last_lines(&tail, |_| true));
    }
    Ok(errors)
}

/// The last error lines of a CRIU log, newest last, on one line. The log may quote what hostile code chose.
#[must_use]
pub fn last_errors(log: &str) -> String {
    last_lines(log, |line| line.contains("Error ("))
}

fn last_lines(log: &str, wanted: impl Fn(&str) -> bool) -> String {
    let clean = |line: &str| -> String {
        // "(00.012828) Error (criu/sk-unix.c:351): unix: …": the time says nothing here.
        let line = line.split_once(") ").map_or(line, |(_, rest)| rest);
        line.chars()
            .filter(|c| !c.is_control())
            .take(ERROR_LINES.1)
            .collect()
    };
    let mut lines: Vec<String> = log
        .lines()
        .rev()
        .filter(|line| wanted(line) && !HARMLESS.iter().any(|harmless| line.contains(harmless)))
        .take(ERROR_LINES.0)
        .map(clean)
        .collect();
    lines.reverse();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn errors_are_found_bounded_and_cleaned() {
        let log = format!(
            "(00.1) Warn  (a): x\n(00.1) Error (criu/util.c:1): rlimit: Can't setup RLIMIT_NOFILE for self\n\
             (00.2) Error (criu/a.c:1): first\x1b[31m\n(00.3) done\n(00.4) Error (criu/b.c:2): {}\n",
            "y".repeat(1000)
        );
        let errors = last_errors(&log);
        assert!(errors.starts_with("Error (criu/a.c:1): first[31m; Error (criu/b.c:2): yyy"));
        assert!(errors.len() < 600);
        assert_eq!(last_errors("nothing"), "");
    }

    #[test]
    fn without_an_error_the_last_lines_are_its_last_words() {
        let said = |log: &str| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(log.as_bytes()).unwrap();
            last_words(&file).unwrap()
        };
        let log = "(00.1) one\n(00.2) Error (criu/a.c:1): first\n(00.3) three\n";
        assert_eq!(said(log), "Error (criu/a.c:1): first");
        assert_eq!(said("(00.1) one\n(00.2) two\n"), "one; two");
        assert_eq!(said(&"x\n".repeat(LOG_TAIL)), "x; x; x; x");
        assert_eq!(said(""), "");
    }
}
