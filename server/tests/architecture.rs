//! The layout that `lib.rs` and README promise: modules use only those below them, README's walk leads to what it names,
//! and files are short.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of a crate, in the order in which its root declares them.
fn declared(root: &Path) -> Vec<String> {
    let text = fs::read_to_string(root).expect("the crate's root");
    text.lines()
        .filter_map(|line| {
            line.strip_prefix("pub ")
                .unwrap_or(line)
                .strip_prefix("mod ")
        })
        .filter_map(|rest| rest.strip_suffix(';'))
        .map(str::to_owned)
        .collect()
}

/// All files below a directory with one of these extensions, but those that were built or fetched.
fn sources(dir: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_fetched =
            name.starts_with('.') || ["target", "node_modules", "vendor"].contains(&name.as_str());
        let path = entry.path();
        if entry.file_type().expect("its type").is_dir() {
            if is_fetched {
                continue;
            }
            found.extend(sources(&path, extensions));
            continue;
        }
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        if extensions.contains(&&*extension) {
            found.push(path);
        }
    }
    found
}

/// Whether a file holds tests only.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| {
        let name = part.as_os_str().to_string_lossy();
        name == "tests" || name == "tests.rs" || name.ends_with("_tests.rs")
    })
}

/// A source without its unit tests and its comments.
fn code_of(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source");
    let code = text.split("#[cfg(test)]\nmod tests {").next();
    code.unwrap_or_default()
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

/// The first names of all paths that begin with `crate::`, those in braces included.
fn used(code: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let mut all = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let Some(group) = rest.strip_prefix('{') else {
            all.push(name(rest));
            continue;
        };
        let (mut depth, mut begins) = (0_u32, true);
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                c if begins && c.is_alphabetic() => {
                    all.push(name(&group[at..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    all
}

/// What is used from further up than where it is used, as `file: uses module`.
fn upward(src: &Path, root: &str) -> Vec<String> {
    let order = declared(&src.join(root));
    assert!(
        order.len() > 5,
        "the modules of {root} were found: {order:?}"
    );
    let place: HashMap<&str, usize> = order.iter().map(String::as_str).zip(0..).collect();
    let mut wrong = Vec::new();
    for path in sources(src, &["rs"]) {
        let relative = path.strip_prefix(src).expect("below src");
        let first = relative.components().next().expect("a name");
        let module = first.as_os_str().to_string_lossy();
        let Some(&here) = place.get(module.trim_end_matches(".rs")) else {
            continue;
        };
        if is_test(relative) {
            continue;
        }
        for name in used(&code_of(&path)) {
            if place.get(name.as_str()).is_some_and(|&there| there < here) {
                wrong.push(format!("{}: uses {name}", relative.display()));
            }
        }
    }
    wrong
}

fn repository() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().expect("the repository").to_owned()
}

#[test]
fn modules_use_only_those_below_them() {
    for (src, root) in [
        ("server/src", "lib.rs"),
        ("host/src", "lib.rs"),
        ("ebpf/src", "lib.rs"),
        ("gateway/src", "lib.rs"),
        ("benches/src", "main.rs"),
    ] {
        let wrong = upward(&repository().join(src), root);
        assert!(wrong.is_empty(), "{src}: {wrong:#?}");
    }
}

#[test]
fn an_upward_use_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("written");
    write(
        "lib.rs",
        "pub mod a;\nmod b;\npub mod c;\npub mod d;\npub mod e;\npub mod f;\n",
    );
    write(
        "a.rs",
        "use crate::b::B;\nuse crate::{c::C, d::{self, e}};\n",
    );
    write("b.rs", "// crate::a\nfn f() { crate::c::f() }\n");
    write("c.rs", "use crate::{d, b::{B, D}};\n");
    write("d.rs", "#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n");
    fs::create_dir(dir.path().join("e")).expect("made");
    write("e/mod.rs", "let x = crate::a::new();\n");
    let mut wrong = upward(dir.path(), "lib.rs");
    wrong.sort();
    assert_eq!(wrong, ["c.rs: uses b", "e/mod.rs: uses a"]);
}

/// The section of README with this title, its links and what is in backticks: `(text, is_link)`, line by line.
fn walk(readme: &str, title: &str) -> Vec<String> {
    let section = readme.split(title).nth(1).expect("the section");
    let section = section.split("\n## ").next().expect("its end");
    let mut steps: Vec<String> = Vec::new();
    for line in section.lines() {
        let begins = line
            .split_once(". ")
            .is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        if begins || line.is_empty() {
            steps.push(String::new());
        }
        if let Some(step) = steps.last_mut() {
            step.push_str(line);
            step.push(' ');
        }
    }
    steps
}

/// What a step links to.
fn links(step: &str) -> Vec<&str> {
    step.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|link| !link.starts_with("http"))
        .collect()
}

/// Names of Rust items that a step mentions: in backticks, without being a link or a path.
fn names(step: &str) -> Vec<&str> {
    let mut names: Vec<&str> = step.split('`').skip(1).step_by(2).collect();
    names.retain(|name| {
        name.chars()
            .all(|c| c.is_alphanumeric() || c == '_' || c == ':')
    });
    // `Type::method`: both parts must be found.
    names
        .into_iter()
        .flat_map(|name| name.split("::"))
        .collect()
}

/// Whether a source defines an item of this name, or methods of it.
fn defines(source: &str, name: &str) -> bool {
    ["fn ", "struct ", "enum ", "trait ", "mod ", "impl "]
        .iter()
        .flat_map(|keyword| source.split(keyword).skip(1))
        .filter_map(|rest| rest.strip_prefix(name))
        .any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[test]
fn the_walk_in_the_readme_leads_to_what_it_names() {
    let repository = repository();
    let readme = fs::read_to_string(repository.join("README.md")).expect("README");
    let steps = walk(&readme, "\n## The path of an invocation\n");
    let sources: Vec<String> = steps
        .iter()
        .flat_map(|step| links(step))
        .map(|link| repository.join(link))
        .filter(|path| path.is_file())
        .map(|path| code_of(&path))
        .collect();
    let mut checked = 0;
    // A name occurs in a file of its own step, or of one before; and the walk passes where it is defined.
    let mut seen = String::new();
    for step in &steps {
        for link in links(step) {
            let path = repository.join(link);
            assert!(path.exists(), "{link} is not there: {step}");
            if path.is_file() {
                seen.push_str(&fs::read_to_string(path).expect("a source"));
            }
        }
        for name in names(step) {
            assert!(
                seen.contains(name),
                "`{name}` is not in what is linked up to: {step}"
            );
            assert!(
                sources.iter().any(|source| defines(source, name)),
                "`{name}` is defined in nothing that is linked: {step}"
            );
            checked += 1;
        }
    }
    assert!(
        steps.len() > 12 && checked > 20,
        "{} steps, {checked} names",
        steps.len()
    );
}

/// Most lines of a source, its tests left out: about what a reader keeps in mind at once.
const LONGEST: usize = 300;

/// What counts as a source.
const LANGUAGES: [&str; 7] = ["rs", "js", "mjs", "css", "py", "sh", "c"];

/// How the line of a longer source's first comment begins that says why it is one file all the same.
const ARGUED: &str = "One file: ";

/// Whether the comment that a source begins with argues for its length.
fn is_argued(text: &str) -> bool {
    text.lines()
        .take_while(|line| line.is_empty() || line.starts_with(['/', '#', '"', ' ']))
        .any(|line| {
            line.trim_start_matches(['/', '!', '*', '#', '"', ' '])
                .starts_with(ARGUED)
        })
}

/// Lines of a source without the items that only tests compile.
fn production_lines(text: &str) -> usize {
    let mut count = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test") {
            // The item ends where it is closed at the margin.
            lines.find(|line| {
                line.starts_with('}') || (line.ends_with(';') && !line.starts_with(' '))
            });
        } else {
            count += 1;
        }
    }
    count
}

/// The sources below a directory that are too long and do not say why.
fn too_long(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for path in sources(root, &LANGUAGES) {
        let relative = path.strip_prefix(root).expect("below the root");
        if is_test(relative) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source");
        let count = production_lines(&text);
        if count > LONGEST && !is_argued(&text) {
            found.push(format!("{}: {count} lines", relative.display()));
        }
    }
    found.sort();
    found
}

#[test]
fn files_are_short_or_say_why_not() {
    let found = too_long(&repository());
    assert!(
        found.is_empty(),
        "split these, or give the reason in a line `{ARGUED}…` of the first comment: {found:#?}"
    );
}

#[test]
fn a_file_that_grew_too_long_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: String| fs::write(dir.path().join(name), text).expect("written");
    let lines = |count: usize| "fn f() {}\n".repeat(count);
    write("full.rs", lines(LONGEST));
    write("long.rs", lines(LONGEST + 1));
    write(
        "argued.rs",
        format!("//! A.\n//! {ARGUED}a list.\n{}", lines(LONGEST)),
    );
    write("late.rs", format!("{}// {ARGUED}a list.\n", lines(LONGEST)));
    write("long.css", "a {}\n".repeat(LONGEST + 1));
    write(
        "argued.css",
        format!("/* {ARGUED}a list. */\n{}", "a {}\n".repeat(LONGEST)),
    );
    let tests = "#[cfg(test)]\nmod tests {\n    use super::*;\n}\n";
    write("tested.rs", tests.to_owned() + &lines(LONGEST));
    write(
        "declared.rs",
        format!("#[cfg(test)]\nmod t;\n{}", lines(LONGEST + 1)),
    );
    fs::create_dir(dir.path().join("target")).expect("made");
    write("target/built.rs", lines(LONGEST + 1));
    assert_eq!(
        too_long(dir.path()),
        [
            "declared.rs: 301 lines",
            "late.rs: 301 lines",
            "long.css: 301 lines",
            "long.rs: 301 lines"
        ]
    );
}
