//! The console's modules as one script: the browser sends one request instead of one per module.
//!
//! The modules keep to a small part of the language: whole-line imports of named bindings by relative path, and exported
//! functions, classes and constants. Each becomes a function that is called once and returns what it exports, in the order in
//! which modules are evaluated. Anything else is an error, which a test of [`super`] finds.

use std::collections::BTreeSet;

use super::Source;

/// One script of `modules`, the first of which imports the others.
pub(super) fn scripts(modules: &[Source]) -> Result<String, String> {
    let (entry, _) = modules.first().ok_or("no modules")?;
    let mut bundle = Bundle {
        modules,
        done: BTreeSet::new(),
        entered: BTreeSet::new(),
        out: String::new(),
    };
    bundle.add(entry)?;
    Ok(bundle.out)
}

struct Bundle<'m> {
    modules: &'m [Source],
    done: BTreeSet<String>,
    entered: BTreeSet<String>,
    out: String,
}

impl Bundle<'_> {
    fn add(&mut self, name: &str) -> Result<(), String> {
        if self.done.contains(name) {
            return Ok(());
        }
        if !self.entered.insert(name.to_owned()) {
            return Err(format!("{name} imports itself by way of others"));
        }
        let found = self.modules.iter().find(|(known, _)| *known == name);
        let (_, bytes) = found.ok_or_else(|| format!("{name} is not in the bundle"))?;
        let source = std::str::from_utf8(bytes).map_err(|error| format!("{name}: {error}"))?;
        let mut body = String::new();
        let mut exports = Vec::new();
        let mut lines = source.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("import ") {
                let mut statement = line.to_owned();
                while !statement.ends_with(';') {
                    let next = lines
                        .next()
                        .ok_or_else(|| format!("{name}: an import without an end"))?;
                    statement.push_str(next.trim());
                }
                let (names, from) =
                    import(&statement).ok_or_else(|| format!("{name}: {statement}"))?;
                let from = resolve(name, from)?;
                self.add(&from)?;
                body.push_str(&format!("const {names} = {};\n", variable(&from)));
            } else if let Some(declaration) = line.strip_prefix("export ") {
                exports.push(declared(declaration).ok_or_else(|| format!("{name}: {line}"))?);
                body.push_str(declaration);
                body.push('\n');
            } else {
                body.push_str(line);
                body.push('\n');
            }
        }
        self.out.push_str(&format!(
            "// {name}\nconst {} = (() => {{\n{body}return {{ {} }};\n}})();\n",
            variable(name),
            exports.join(", ")
        ));
        self.done.insert(name.to_owned());
        Ok(())
    }
}

/// The bindings, in braces, and the path of `import { a, b } from "./c.js";`.
fn import(statement: &str) -> Option<(&str, &str)> {
    let (names, from) = statement.strip_prefix("import ")?.split_once(" from ")?;
    let from = from.strip_prefix('"')?.strip_suffix("\";")?;
    let plain = names.starts_with('{') && names.ends_with('}') && !names.contains(" as ");
    plain.then_some((names, from))
}

/// What `function a(`, `class A` or `const a =` declares.
fn declared(declaration: &str) -> Option<String> {
    let rest = ["async function ", "function ", "class ", "const "]
        .iter()
        .find_map(|keyword| declaration.strip_prefix(keyword))?;
    let name: String = rest
        .chars()
        .take_while(|char| char.is_ascii_alphanumeric() || *char == '_')
        .collect();
    (!name.is_empty()).then_some(name)
}

/// The path below `/static` that `from` means in the module `name`.
fn resolve(name: &str, from: &str) -> Result<String, String> {
    let mut path: Vec<&str> = name.split('/').collect();
    path.pop();
    for step in from.split('/') {
        match step {
            "." => {}
            ".." => {
                path.pop();
            }
            step => path.push(step),
        }
    }
    match from.starts_with('.') {
        true => Ok(path.join("/")),
        false => Err(format!("{name} imports {from}, which is no relative path")),
    }
}

/// What holds a module's exports.
fn variable(name: &str) -> String {
    let letters = |char: char| {
        if char.is_ascii_alphanumeric() {
            char
        } else {
            '_'
        }
    };
    format!("$${}", name.chars().map(letters).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_once_and_before_who_imports_them() {
        let script = scripts(&[
            (
                "js/a.js",
                b"import { c } from \"./d/c.js\";\nimport {\n  b,\n} from \"./b.js\";\nb(c);\n",
            ),
            (
                "js/b.js",
                b"import { c } from \"./d/c.js\";\nexport function b(x) {\n  return x + c;\n}\n",
            ),
            ("js/d/c.js", b"export const c = 1;\n"),
        ]);
        let script = script.expect("a bundle");
        assert_eq!(
            script,
            "// js/d/c.js\nconst $$js_d_c_js = (() => {\nconst c = 1;\nreturn { c };\n})();\n\
             // js/b.js\nconst $$js_b_js = (() => {\nconst { c } = $$js_d_c_js;\nfunction b(x) {\n  return x + c;\n}\nreturn { b };\n})();\n\
             // js/a.js\nconst $$js_a_js = (() => {\nconst { c } = $$js_d_c_js;\nconst {b,} = $$js_b_js;\nb(c);\nreturn {  };\n})();\n"
        );
    }

    #[test]
    fn what_cannot_be_put_together_is_named() {
        let refused = |source: &'static str| {
            scripts(&[
                ("js/a.js", source.as_bytes()),
                ("js/b.js", b"import { x } from \"./a.js\";\n"),
            ])
            .expect_err("refused")
        };
        for (source, named) in [
            ("import x from \"./b.js\";\n", "js/a.js"),
            ("import { x as y } from \"./b.js\";\n", "js/a.js"),
            ("export default 1;\n", "js/a.js"),
            ("export let x = 1;\n", "js/a.js"),
            ("import { x } from \"./none.js\";\n", "js/none.js"),
            ("import { x } from \"lit\";\n", "lit"),
            ("import { x } from \"./b.js\";\n", "imports itself"),
        ] {
            let error = refused(source);
            assert!(error.contains(named), "{source}: {error}");
        }
    }
}
