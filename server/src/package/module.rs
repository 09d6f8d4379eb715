//! What the handler setting names: the module, or the executable, that a runtime starts from.

use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::error::PackageError;
use super::executable;
use super::tree::Tree;
use crate::model::Runtime;

/// How many of the files that are there a refusal lists.
const LISTED_FILES: usize = 5;

/// See the module.
#[derive(Debug, Clone)]
pub struct Entry {
    /// `main` of `main.handler`; a native function's handler is a path.
    name: String,
    runtime: Runtime,
}

impl Entry {
    /// What a handler setting names.
    pub fn of(handler: &str, runtime: Runtime) -> Self {
        let name = match runtime {
            Runtime::Native => handler,
            // Whatever its handler is.
            Runtime::Provided => Runtime::Provided.default_handler(),
            Runtime::Python3 | Runtime::Node => handler
                .rsplit_once('.')
                .map_or(handler, |(module, _)| module),
        };
        Self {
            name: name.to_owned(),
            runtime,
        }
    }

    /// The file that code becomes which came without a name, and whether it is executable.
    pub(super) fn file(&self) -> Result<(String, bool), PackageError> {
        match self.runtime {
            Runtime::Native | Runtime::Provided => return Ok((self.name.clone(), true)),
            _ if is_simple(&self.name) => {}
            _ => {
                return Err(PackageError::Module {
                    module: self.name.clone(),
                });
            }
        }
        Ok((self.expected(), false))
    }

    /// The file that is looked for first.
    fn expected(&self) -> String {
        match self.runtime {
            // Python separates packages by dots; Lambda takes slashes as well.
            Runtime::Python3 => format!("{}.py", self.name.replace('.', "/")),
            // Node detects the module type from the syntax.
            Runtime::Node => format!("{}.js", self.name),
            Runtime::Native | Runtime::Provided => self.name.clone(),
        }
    }

    /// Checks that `tree` holds it. An executable is made one: archives of some systems have no modes.
    pub(super) fn check(&self, tree: &mut Tree<'_>) -> Result<(), PackageError> {
        let expected = self.expected();
        let base = expected.rsplit_once('.').map_or("", |(base, _)| base);
        let present = match self.runtime {
            Runtime::Python3 => {
                tree.has(&expected)
                    || tree.has(&format!("{base}/__init__.py"))
                    || tree.has(&format!("{base}.pyc"))
                    || has_native_module(tree, base)
            }
            Runtime::Node => ["js", "mjs", "cjs"]
                .iter()
                .any(|ext| tree.has(&format!("{base}.{ext}"))),
            Runtime::Native | Runtime::Provided => tree.make_executable(&expected),
        };
        if !present {
            return Err(PackageError::MissingModule {
                expected,
                required_by: match self.runtime {
                    Runtime::Provided => "the runtime provided",
                    _ => "the handler setting",
                },
                found: describe(tree),
            });
        }
        self.check_executable(tree.path())
    }

    /// Checks that an installed package has it, for a handler that was changed.
    ///
    /// # Errors
    /// It is a native function's, and no executable for this host is there. What an import finds is for the import to say.
    pub(super) fn check_in(&self, package: &Path) -> Result<(), PackageError> {
        if self.runtime != Runtime::Native {
            return Ok(());
        }
        let found = package.join(&self.name).metadata().ok();
        let reason = match found.filter(Metadata::is_file) {
            None => "is not in the code, and the handler setting requires it",
            // A package is what its hash says: it is not changed for a setting.
            Some(file) if file.permissions().mode() & 0o111 == 0 => {
                "is not marked as executable in the code; upload the code again together with this handler"
            }
            Some(_) => return self.check_executable(package),
        };
        Err(PackageError::NotExecutable {
            file: self.name.clone(),
            reason: reason.to_owned(),
        })
    }

    fn check_executable(&self, dir: &Path) -> Result<(), PackageError> {
        let file = dir.join(&self.name);
        let problem = match self.runtime {
            Runtime::Native => executable::problem(&file)?,
            Runtime::Provided => executable::problem_of_bootstrap(&file)?,
            Runtime::Python3 | Runtime::Node => None,
        };
        match problem {
            None => Ok(()),
            Some(reason) => Err(PackageError::NotExecutable {
                file: self.name.clone(),
                reason,
            }),
        }
    }
}

/// Whether a single file can be this module: `[A-Za-z0-9_-]`, 1 to 200 of them.
fn is_simple(module: &str) -> bool {
    (1..=200).contains(&module.len())
        && module
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
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
