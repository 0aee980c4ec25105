//! The rooms of the core import downwards only, and no file is part of an import circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms from the ground up: each may import the rooms of earlier rows only, so that subjects
/// do not import one another, and filters and tempering know no model.
const FLOORS: [&[&str]; 11] = [
    &["error"],
    &["memory"],
    &["control"],
    &["counts"],
    &["rng"],
    &["math"],
    &["estimate"],
    &["urn"],
    &["filter", "temper", "regression"],
    &["document", "allocation", "training"],
    &["lib"],
];

/// A module by the names from the crate's root to it; the root itself has none.
type Module = Vec<String>;

/// Imports of a file, and the names that it passes on as its own.
#[derive(Default)]
struct Imports {
    paths: Vec<Vec<String>>,
    exports: BTreeMap<String, Vec<String>>,
}

struct Source {
    modules: BTreeMap<Module, Imports>,
}

impl Source {
    fn read(root: &Path) -> Self {
        let files = rust_files(root);
        let module_of = |file: &PathBuf| {
            let relative = file.strip_prefix(root).expect("a file of the root").with_extension("");
            let mut names: Module =
                relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if names.last().is_some_and(|name| name == "mod" || name == "lib") {
                names.pop();
            }
            names
        };
        let known: BTreeSet<Module> = files.iter().map(module_of).collect();
        let modules = files
            .iter()
            .map(|file| {
                let module = module_of(file);
                let text = fs::read_to_string(file).expect("a readable file");
                let imports = imports(&without_tests(&code(&text)), &module, &known);
                (module, imports)
            })
            .collect();
        Source { modules }
    }

    /// The module whose file defines what a path names, through all that is passed on.
    fn home(&self, path: &[String]) -> Module {
        let mut module = Module::new();
        for (at, name) in path.iter().enumerate() {
            module.push(name.clone());
            if self.modules.contains_key(&module) {
                continue;
            }
            module.pop();
            let exports = &self.modules[&module].exports;
            return match exports.get(name).filter(|target| target.as_slice() != path) {
                Some(target) => self.home(&[target, &path[at + 1..]].concat()),
                None => module,
            };
        }
        module
    }

    /// The modules that each module imports.
    fn arrows(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let homes = |imports: &Imports| imports.paths.iter().map(|path| self.home(path)).collect();
        let mut arrows: BTreeMap<&Module, BTreeSet<Module>> =
            self.modules.iter().map(|(module, imports)| (module, homes(imports))).collect();
        arrows.iter_mut().for_each(|(module, targets)| {
            targets.remove(*module);
        });
        arrows
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The text without comments and with empty literals.
fn code(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            string_length(rest)
        } else if rest.starts_with("r#\"") {
            rest.find("\"#").map_or(rest.len(), |end| end + 2)
        } else if first == '\'' {
            character_length(rest)
        } else {
            result.push(first);
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    result
}

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        if letter == '"' && !escaped {
            return at + 1;
        }
        escaped = letter == '\\' && !escaped;
    }
    text.len()
}

/// Length of a character literal, or of the quote alone before the name of a lifetime.
fn character_length(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    match letters.next() {
        Some((_, '\\')) => text[2..].find('\'').map_or(1, |end| end + 3),
        Some(_) => letters.next().filter(|&(_, end)| end == '\'').map_or(1, |(at, _)| at + 1),
        None => 1,
    }
}

/// The code without its `#[cfg(test)]` items.
fn without_tests(code: &str) -> String {
    let mut parts = code.split("#[cfg(test)]");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(['{', ';']).unwrap_or(part.len());
        let block = part[end..].starts_with('{');
        result.push_str(&part[if block { end + block_length(&part[end..]) } else { end }..]);
    }
    result
}

/// Length of a block in braces.
fn block_length(text: &str) -> usize {
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => (),
        }
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn imports(code: &str, module: &Module, known: &BTreeSet<Module>) -> Imports {
    let mut imports = Imports::default();
    let absolute = |path: &[String]| absolute(path, module, known);
    let mut own = String::new();
    for statement in code.split_inclusive(';') {
        let exports = ["pub use ", "pub(crate) use ", "pub(super) use "];
        let Some(at) = exports.iter().find_map(|start| statement.find(start)) else {
            own.push_str(statement);
            continue;
        };
        // A name that is passed on is no import: whoever asks for it imports its home.
        own.push_str(&statement[..at]);
        let start = at + statement[at..].find("use ").unwrap_or_default() + 4;
        for mut path in paths(&statement[start..]) {
            let name = path.pop_if(|last| last.starts_with("as ")).map(|name| name[3..].to_owned());
            if let (Some(target), Some(last)) = (absolute(&path), path.last()) {
                imports.exports.insert(name.unwrap_or_else(|| last.clone()), target);
            }
        }
    }
    let starts = own.char_indices().filter(|&(at, letter)| {
        is_name(letter) && !own[..at].ends_with(|before| is_name(before) || before == ':')
    });
    for (at, _) in starts {
        let word: String = own[at..].chars().take_while(|&letter| is_name(letter)).collect();
        if own[at + word.len()..].starts_with("::") {
            for path in paths(&own[at..]) {
                imports.paths.extend(absolute(&path));
            }
        }
    }
    imports
}

/// A path of this crate from its root; none for one of another crate or of a name in scope.
fn absolute(path: &[String], module: &Module, known: &BTreeSet<Module>) -> Option<Vec<String>> {
    let mut base = module.clone();
    let mut names = path.iter().filter(|name| !name.starts_with("as ")).peekable();
    match names.peek()?.as_str() {
        "crate" => {
            base.clear();
            names.next();
        }
        "self" => {
            names.next();
        }
        "super" => {
            while names.next_if(|name| *name == "super").is_some() {
                base.pop();
            }
        }
        child => {
            base.push(child.to_owned());
            if !known.contains(&base) {
                return None;
            }
            base.pop();
        }
    }
    base.extend(names.filter(|name| *name != "self" && *name != "*").cloned());
    Some(base)
}

/// All paths of the tree that the text starts with: `a::{b, c::d as e}` holds two.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut prefix = Vec::new();
    let mut rest = text.trim_start();
    loop {
        let length = rest.find(|letter| !is_name(letter) && letter != '*').unwrap_or(rest.len());
        if length > 0 {
            prefix.push(rest[..length].to_owned());
        }
        rest = rest[length..].trim_start();
        if let Some(after) = rest.strip_prefix("::") {
            rest = after.trim_start();
            if rest.starts_with('{') {
                let block = &rest[1..block_length(rest) - 1];
                let branches = branches(block).into_iter().flat_map(paths);
                return branches.map(|branch| [prefix.clone(), branch].concat()).collect();
            }
        } else {
            if let Some(name) = rest.strip_prefix("as ") {
                let end = name.find(|letter| !is_name(letter)).unwrap_or(name.len());
                prefix.push(format!("as {}", &name[..end]));
            }
            return vec![prefix];
        }
    }
}

/// The parts between the commas outside of inner braces.
fn branches(block: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, letter) in block.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&block[start..at]);
                start = at + 1;
            }
            _ => (),
        }
    }
    parts.push(&block[start..]);
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect()
}

fn core() -> Source {
    Source::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

fn floor(room: &str) -> usize {
    FLOORS
        .iter()
        .position(|rooms| rooms.contains(&room))
        .unwrap_or_else(|| panic!("room {room} stands on no floor: add it to FLOORS"))
}

fn name(module: &Module) -> String {
    if module.is_empty() { "lib".to_owned() } else { module.join("::") }
}

#[test]
fn rooms_import_those_below_them() {
    let core = core();
    let mut upward = Vec::new();
    for (module, targets) in core.arrows() {
        let room = module.first().map_or("lib", String::as_str);
        for target in targets {
            let other = target.first().map_or("lib", String::as_str);
            if other != room && floor(other) >= floor(room) {
                upward.push(format!("{} imports {}", name(module), name(&target)));
            }
        }
    }
    assert!(upward.is_empty(), "upward arrows:\n{}", upward.join("\n"));
}

#[test]
fn no_file_is_part_of_a_circle() {
    let core = core();
    let arrows = core.arrows();
    let reachable = |from: &Module| {
        let (mut found, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(module) = open.pop() {
            for target in &arrows[&module] {
                if found.insert(target.clone()) {
                    open.push(target.clone());
                }
            }
        }
        found
    };
    let reach: BTreeMap<&Module, BTreeSet<Module>> =
        arrows.keys().map(|module| (*module, reachable(module))).collect();
    let circles: BTreeSet<Vec<String>> = reach
        .iter()
        .filter(|(module, found)| found.contains(**module))
        .map(|(module, found)| {
            let both = found.iter().filter(|other| reach[*other].contains(*module));
            both.map(name).collect()
        })
        .collect();
    assert!(circles.is_empty(), "import circles: {circles:#?}");
}

#[test]
fn imports_are_read_as_rust_reads_them() {
    let known = [vec![], vec!["a".into()], vec!["a".into(), "b".into()], vec!["c".into()]];
    let known: BTreeSet<Module> = known.into_iter().collect();
    let text = r#"
        // use crate::c::Comment;
        use crate::{c::{D, e::F as G}, a::*};
        use super::c::H;
        pub(crate) use super::c::N;
        pub use super::c::I as J;
        fn f<'a>(x: &'a str) -> char { std::mem::drop("crate::c::Text {"); '{' }
        fn g() { crate::c::k(); b::l() }
        #[cfg(test)]
        mod tests { use crate::c::Test; }
        use self::b::M;
    "#;
    let found = imports(&without_tests(&code(text)), &vec!["a".to_owned()], &known);
    let paths: Vec<String> = found.paths.iter().map(|path| path.join("::")).collect();
    let expected = ["c::D", "c::e::F", "a", "c::H", "c::k", "a::b::l", "a::b::M"];
    assert_eq!(paths, expected);
    assert_eq!(found.exports["J"].join("::"), "c::I");
    assert_eq!(found.exports["N"].join("::"), "c::N");
}

/// The compiler forbids it in the core and denies it in the binding, where nothing allows it again.
#[test]
fn neither_the_core_nor_the_binding_has_unsafe_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let core = fs::read_to_string(root.join("src/lib.rs")).unwrap();
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    assert!(core.contains("\n#![forbid(unsafe_code)]"));
    assert!(manifest.contains("\nunsafe_code = \"deny\""));
    for folder in ["src", "python/src"] {
        let files = rust_files(&root.join(folder));
        assert!(files.len() > 10, "{folder} has {} files", files.len());
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let others =
                |line: &&str| line.contains("unsafe") && !line.contains("forbid(unsafe_code)");
            let found = lines.filter(others).count();
            assert_eq!(found, 0, "{}", file.display());
        }
    }
}
