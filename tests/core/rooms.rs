//! The rooms of the core import downwards only, and no file is part of an import circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, UseTree, Visibility};

/// The rooms from the ground up: each may import the rooms of earlier rows only, so that subjects
/// do not import one another, and filters and tempering know no model.
const FLOORS: [&[&str]; 11] = [
    &["error"],
    &["memory", "simd"],
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

/// Names from the crate's root to a module, or to what a module defines; the root itself has none.
type Names = Vec<String>;

/// Paths that a file uses, and the names that it passes on as its own.
#[derive(Default)]
struct Imports {
    paths: Vec<Names>,
    exports: BTreeMap<String, Names>,
}

impl Visit<'_> for Imports {
    fn visit_item(&mut self, item: &Item) {
        let attributes: &[Attribute] = match item {
            Item::Mod(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            _ => &[],
        };
        let is_test = |found: &Attribute| {
            found.path().is_ident("cfg")
                && found.parse_args::<syn::Ident>().is_ok_and(|flag| flag == "test")
        };
        if !attributes.iter().any(is_test) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        for (names, own) in leaves(&item.tree) {
            // A name that is passed on is no import: whoever asks for it imports its home.
            if matches!(item.vis, Visibility::Inherited) {
                self.paths.push(names);
            } else {
                self.exports.insert(own, names);
            }
        }
    }

    fn visit_path(&mut self, path: &syn::Path) {
        if path.segments.len() > 1 {
            self.paths.push(path.segments.iter().map(|part| part.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }
}

/// All paths of `use a::{b, c::d as e}`, each with the name that it has from then on.
fn leaves(tree: &UseTree) -> Vec<(Names, String)> {
    match tree {
        UseTree::Path(path) => {
            let below = leaves(&path.tree).into_iter();
            below
                .map(|(names, own)| ([vec![path.ident.to_string()], names].concat(), own))
                .collect()
        }
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
        UseTree::Name(name) => vec![(vec![name.ident.to_string()], name.ident.to_string())],
        UseTree::Rename(name) => vec![(vec![name.ident.to_string()], name.rename.to_string())],
        UseTree::Glob(_) => vec![(Vec::new(), String::new())],
    }
}

/// The files of the core by their modules.
struct Core(BTreeMap<Names, Imports>);

impl Core {
    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let read = |file: PathBuf| {
            let relative = file.strip_prefix(&root).unwrap().with_extension("");
            let mut names: Names =
                relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            names.pop_if(|name| name == "mod" || name == "lib");
            (names, imports(&fs::read_to_string(file).unwrap()))
        };
        Core(rust_files(&root).into_iter().map(read).collect())
    }

    /// A path of this crate from its root; none for one of another crate or of a name in scope.
    fn absolute(&self, path: &[String], module: &Names) -> Option<Names> {
        let mut base = module.clone();
        let n_relative = path.iter().take_while(|name| *name == "super").count();
        match path.first().map(String::as_str) {
            Some("crate") => return Some(path[1..].to_vec()),
            Some("self") => return Some([&base, &path[1..]].concat()),
            Some("super") => base.truncate(base.len() - n_relative),
            _ if !self.0.contains_key(&[&base, path.get(..1)?].concat()) => return None,
            _ => (),
        }
        Some([&base, &path[n_relative..]].concat())
    }

    /// The module whose file defines what a path names, through all that is passed on.
    fn home(&self, path: &[String]) -> Names {
        let within = |n: &usize| self.0.contains_key(&path[..*n]);
        let module = path[..(0..=path.len()).rev().find(within).unwrap_or(0)].to_vec();
        let next = path.get(module.len()).and_then(|name| self.0[&module].exports.get(name));
        match next.and_then(|target| self.absolute(target, &module)) {
            Some(target) if target != path => {
                self.home(&[&target, &path[module.len() + 1..]].concat())
            }
            _ => module,
        }
    }

    /// The modules that each module imports.
    fn arrows(&self) -> BTreeMap<&Names, BTreeSet<Names>> {
        let targets = |(module, imports): (_, &Imports)| {
            let paths = imports.paths.iter().filter_map(|path| self.absolute(path, module));
            (module, paths.map(|path| self.home(&path)).filter(|home| home != module).collect())
        };
        self.0.iter().map(targets).collect()
    }
}

fn imports(text: &str) -> Imports {
    let mut imports = Imports::default();
    imports.visit_file(&syn::parse_file(text).expect("a file of Rust"));
    imports
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    files.chain(folders.iter().flat_map(|folder| rust_files(folder))).collect()
}

fn name(module: &Names) -> String {
    if module.is_empty() { "lib".to_owned() } else { module.join("::") }
}

#[test]
fn rooms_import_those_below_them() {
    let room = |module: &Names| module.first().map_or("lib", String::as_str).to_owned();
    let floor = |room: &str| {
        let found = FLOORS.iter().position(|rooms| rooms.contains(&room));
        found.unwrap_or_else(|| panic!("room {room} stands on no floor: add it to FLOORS"))
    };
    let core = Core::read();
    let mut upward = Vec::new();
    for (module, targets) in core.arrows() {
        let (from, of) = (floor(&room(module)), room(module));
        let above = targets.iter().filter(|to| room(to) != of && floor(&room(to)) >= from);
        upward.extend(above.map(|to| format!("{} imports {}", name(module), name(to))));
    }
    assert!(upward.is_empty(), "upward arrows:\n{}", upward.join("\n"));
}

#[test]
fn no_file_is_part_of_a_circle() {
    let core = Core::read();
    let mut arrows = core.arrows();
    // Files that import nothing that is left are on no circle.
    while let Some(done) = arrows.iter().find(|(_, targets)| targets.is_empty()) {
        let done = *done.0;
        arrows.remove(done);
        arrows.values_mut().for_each(|targets| _ = targets.remove(done));
    }
    let circles: Vec<String> = arrows.keys().map(|module| name(module)).collect();
    assert!(circles.is_empty(), "import circles, or what imports them: {circles:#?}");
}

#[test]
fn imports_are_read_as_rust_reads_them() {
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
    let modules = [vec![], vec!["a"], vec!["a", "b"], vec!["c"]];
    let names = |module: Vec<&str>| module.into_iter().map(str::to_owned).collect::<Names>();
    let files = modules.into_iter().map(|module| (names(module), Imports::default()));
    let mut core = Core(files.collect());
    let module = names(vec!["a"]);
    let found = imports(text);
    let paths = found.paths.iter().filter_map(|path| core.absolute(path, &module));
    let paths: BTreeSet<String> = paths.map(|path| path.join("::")).collect();
    let expected = ["c::D", "c::e::F", "a", "c::H", "c::k", "a::b::l", "a::b::M"];
    assert_eq!(paths, expected.into_iter().map(str::to_owned).collect());
    core.0.insert(module, found);
    assert_eq!(core.home(&names(vec!["a", "J"])), ["c"]);
    assert_eq!(core.home(&names(vec!["a", "N"])), ["c"]);
}

/// The compiler forbids it in the core and denies it in the binding, where nothing allows it again.
#[test]
fn neither_the_core_nor_the_binding_has_unsafe_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &Path| fs::read_to_string(file).unwrap();
    assert!(read(&root.join("src/lib.rs")).contains("\n#![forbid(unsafe_code)]"));
    assert!(read(&root.join("Cargo.toml")).contains("\nunsafe_code = \"deny\""));
    let binding = rust_files(&root.join("python/src"));
    assert!(binding.len() > 10, "{} files", binding.len());
    for file in binding {
        assert!(!read(&file).contains("unsafe_code"), "{}", file.display());
    }
}
