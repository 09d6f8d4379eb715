//! Lists a process's sockets from `/proc`.

use std::fs;
use std::io;

/// A listening TCP socket, in `/proc/PID/net/tcp` (`TCP_LISTEN`, `include/net/tcp_states.h`).
const LISTENING: &str = "0A";
/// A connection that is over and only remembered (`TCP_TIME_WAIT`).
const OVER: &str = "06";

/// Whether there is a TCP connection in the network namespace of the process.
pub fn has_connections(pid: i32) -> io::Result<bool> {
    let mut found = false;
    for table in ["tcp", "tcp6"] {
        found |= connected(&read(pid, table)?);
    }
    Ok(found)
}

/// Whether the process has sockets that are neither Unix's nor netlink's.
pub fn has_internet_sockets(pid: i32) -> io::Result<bool> {
    let others = [read(pid, "unix")?, read(pid, "netlink")?];
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        // Skips one that was closed meanwhile.
        let Ok(link) = fs::read_link(entry?.path()) else {
            continue;
        };
        let link = link.to_string_lossy();
        if let Some(inode) = link
            .strip_prefix("socket:[")
            .and_then(|rest| rest.strip_suffix(']'))
            && !others.iter().any(|table| lists(table, inode))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A table of the process's network namespace. A kernel without that protocol has none.
fn read(pid: i32, table: &str) -> io::Result<String> {
    match fs::read_to_string(format!("/proc/{pid}/net/{table}")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other,
    }
}

/// Whether a table of TCP has a line of a connection: the fourth field is its state.
fn connected(table: &str) -> bool {
    table
        .lines()
        .skip(1)
        .filter_map(|line| line.split_ascii_whitespace().nth(3))
        .any(|state| state != LISTENING && state != OVER)
}

/// Whether some line of a table has this inode as one of its fields.
fn lists(table: &str, inode: &str) -> bool {
    table
        .lines()
        .skip(1)
        .any(|line| line.split_ascii_whitespace().any(|field| field == inode))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::UnixStream;

    use super::*;

    const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    #[test]
    fn what_listens_is_not_connected() {
        let line = |state: &str| {
            format!(
                "{HEAD}   0: 0100007F:2328 00000000:0000 {state} 00000000:00000000 00:0 0 0 0 5 1\n"
            )
        };
        assert!(!connected(HEAD));
        assert!(!connected(&line("0A")));
        assert!(!connected(&line("06")));
        for state in ["01", "02", "08"] {
            assert!(connected(&line(state)), "{state}");
        }
    }

    #[test]
    fn internet_sockets_are_told_from_others() {
        let inode = |fd: &dyn std::os::fd::AsRawFd| {
            let link = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap();
            let link = link.to_string_lossy().into_owned();
            link.trim_matches(|c: char| !c.is_ascii_digit()).to_owned()
        };
        let pid = std::process::id().cast_signed();
        let (unix, _other) = UnixStream::pair().unwrap();
        assert!(lists(&read(pid, "unix").unwrap(), &inode(&unix)));
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(!lists(&read(pid, "unix").unwrap(), &inode(&udp)));
        assert!(has_internet_sockets(pid).unwrap());
        let _listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(read(pid, "tcp").unwrap().contains("0100007F"));
    }
}
