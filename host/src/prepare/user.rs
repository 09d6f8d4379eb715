//! The user as which the server runs.

use std::fs;

use crate::settings::{GATEWAY_USER, ServerUser, UIDS};

/// The user's name where `make install` has made one.
const NAME: &str = "hearth";
/// Its number where there is no such user: outside what sandboxes get, and used by no distribution.
const NUMBER: u32 = UIDS.start - 1;
/// Users by name.
const PASSWD: &str = "/etc/passwd";

impl ServerUser {
    /// The user of this name or number; without one, the user `hearth` where there is one, else one that is only a number.
    ///
    /// # Errors
    /// A rule that the setting does not keep.
    pub fn find(setting: Option<&str>) -> Result<Self, String> {
        let passwd = fs::read_to_string(PASSWD).unwrap_or_default();
        Self::find_in(setting, &passwd)
    }

    fn find_in(setting: Option<&str>, passwd: &str) -> Result<Self, String> {
        let found = match setting {
            None => named(NAME, passwd).unwrap_or(Self {
                uid: NUMBER,
                gid: NUMBER,
            }),
            Some(setting) => match setting.parse() {
                Ok(number) => Self {
                    uid: number,
                    gid: number,
                },
                Err(_) => named(setting, passwd)
                    .ok_or("must be a user of this host, or the number of one")?,
            },
        };
        if found.uid == 0 || found.gid == 0 {
            return Err("must not be root: the server has no use for its rights".into());
        }
        if found.uid == GATEWAY_USER.uid || found.gid == GATEWAY_USER.gid {
            return Err(format!("must not be {}: the gateway's", GATEWAY_USER.uid));
        }
        if UIDS.contains(&found.uid) || UIDS.contains(&found.gid) {
            let (first, end) = (UIDS.start, UIDS.end);
            return Err(format!(
                "must not be from {first} to {end}, which sandboxes get"
            ));
        }
        Ok(found)
    }
}

/// A user in a `passwd` file (passwd(5)).
fn named(name: &str, passwd: &str) -> Option<ServerUser> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        Some(ServerUser {
            uid: fields.nth(1)?.parse().ok()?,
            gid: fields.next()?.parse().ok()?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "root:x:0:0::/root:/bin/sh\nbroken\nhearth:x:990:991::/:/usr/sbin/nologin\n";

    #[test]
    fn the_installed_user_comes_before_the_number() {
        let found = |setting, passwd| ServerUser::find_in(setting, passwd);
        let user = |uid, gid| Ok(ServerUser { uid, gid });
        assert_eq!(found(None, FILE), user(990, 991));
        assert_eq!(found(None, ""), user(NUMBER, NUMBER));
        assert_eq!(found(Some("hearth"), FILE), user(990, 991));
        assert_eq!(found(Some("1234"), FILE), user(1234, 1234));
    }

    #[test]
    fn neither_root_nor_a_sandbox_is_taken() {
        for setting in [
            "root",
            "0",
            "1899999998",
            "1900000000",
            "2099999999",
            "nobody-here",
            "-1",
        ] {
            let found = ServerUser::find_in(Some(setting), FILE);
            assert!(found.is_err(), "{setting}");
        }
    }
}
