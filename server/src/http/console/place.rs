//! Where in a function's own code an exception came from, read out of its stack trace.

use hearth_web::pages::CodePlace;

use crate::model::FunctionError;

/// Where a sandbox has the function's code.
const CODE_DIR: &str = "/var/task/";
/// What stands between an exception's frames and those of what caused it.
const CAUSES: [&str; 2] = ["Caused by", "While handling"];

/// The innermost frame within the function's code.
pub fn of(error: &FunctionError) -> Option<CodePlace> {
    let mut python = None;
    for entry in error
        .stack_trace
        .iter()
        .take_while(|entry| !CAUSES.iter().any(|heading| entry.starts_with(heading)))
    {
        for line in entry.lines() {
            // Python's frames come outermost first: the last one counts.
            if let Some(place) = python_frame(line) {
                python = Some(place);
            } else if python.is_none()
                && let Some(place) = node_frame(line)
            {
                return Some(place);
            }
        }
    }
    python
}

/// `  File "/var/task/main.py", line 3, in <module>`.
fn python_frame(line: &str) -> Option<CodePlace> {
    let rest = line.trim_start().strip_prefix("File \"")?;
    let (file, rest) = rest.split_once("\", line ")?;
    let path = file.strip_prefix(CODE_DIR)?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    place(path, digits)
}

/// `    at handler (file:///var/task/main.mjs:3:7)`, or `/var/task/main.js:3` above a line that does not parse.
fn node_frame(line: &str) -> Option<CodePlace> {
    let (_, rest) = line.split_once(CODE_DIR)?;
    let mut parts = rest.split(':');
    let path = parts.next()?;
    let digits = parts.next()?;
    let digits = digits.split(|c: char| !c.is_ascii_digit()).next()?;
    place(path, digits)
}

fn place(path: &str, digits: &str) -> Option<CodePlace> {
    let line = digits.parse().ok().filter(|line| *line > 0)?;
    Some(CodePlace {
        path: path.to_owned(),
        line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(trace: &[&str]) -> Option<(String, u32)> {
        let error = FunctionError {
            error_type: "E".into(),
            error_message: String::new(),
            stack_trace: trace.iter().map(|entry| (*entry).to_owned()).collect(),
        };
        of(&error).map(|place| (place.path, place.line))
    }

    #[test]
    fn pythons_last_own_frame_counts() {
        let place = found(&[
            "  File \"/var/task/main.py\", line 3, in <module>\n    import pkg.mod\n",
            "  File \"/var/task/pkg/mod.py\", line 12, in <module>\n    json.loads('')\n",
            "  File \"/usr/lib/python3.13/json/__init__.py\", line 346, in loads\n",
            "Caused by: KeyError: 'x'",
            "  File \"/var/task/other.py\", line 1, in <module>\n",
        ]);
        assert_eq!(place, Some(("pkg/mod.py".into(), 12)));
    }

    #[test]
    fn nodes_first_own_frame_counts() {
        assert_eq!(
            found(&[
                "    at fail (file:///var/task/lib/a.mjs:7:9)",
                "    at file:///var/task/main.mjs:3:1"
            ]),
            Some(("lib/a.mjs".into(), 7))
        );
        assert_eq!(
            found(&[
                "/var/task/main.js:2\nconst = 1\n      ^",
                "SyntaxError: Unexpected token"
            ]),
            Some(("main.js".into(), 2))
        );
    }

    #[test]
    fn what_is_not_the_functions_own_is_not_told() {
        assert_eq!(found(&[]), None);
        assert_eq!(found(&["  File \"/usr/lib/x.py\", line 3, in f\n"]), None);
        assert_eq!(
            found(&["    at node:internal/main:3:1", "/var/task/"]),
            None
        );
    }
}
