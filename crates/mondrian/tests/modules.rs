//! The structure of the source: no cycles between top-level modules, and a public interface of bounded size.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Names that the crate root re-exports, by the module they come from: `use crate::{Error, Points}` imports those modules.
fn root_names(lib: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let public = lib.split("pub mod internals").next().unwrap_or(lib);
    for statement in statements(public, "pub use ") {
        let (module, items) = statement.split_once("::").expect("re-exports name a module");
        for item in leaves(items) {
            names.insert(item, module.to_owned());
        }
    }
    names
}

/// The texts between a keyword at the start of a line and the next semicolon.
fn statements<'a>(source: &'a str, keyword: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(keyword) {
        let is_line_start = rest[..at].ends_with('\n') || at == 0;
        rest = &rest[at + keyword.len()..];
        if is_line_start {
            found.push(rest.split(';').next().unwrap_or(""));
        }
    }
    found
}

/// The names at the ends of an import such as `a::{B, c::{D, E}}`.
fn leaves(items: &str) -> Vec<String> {
    items
        .split([',', '{', '}'])
        .map(str::trim)
        .filter(|item| !item.is_empty() && !item.ends_with("::"))
        .map(|item| item.rsplit("::").next().unwrap_or(item).to_owned())
        .collect()
}

/// The source without comments and without its tests.
fn code(source: &str) -> String {
    let source = source.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
    source.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Which top-level modules each one imports.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(source.join("lib.rs")).unwrap();
    let names = root_names(&lib);
    let mut all = Vec::new();
    files(&source, &mut all);
    let module_of = |path: &Path| {
        let first = path.strip_prefix(&source).unwrap().iter().next().unwrap();
        Path::new(first).file_stem().unwrap().to_str().unwrap().to_owned()
    };
    let modules: BTreeSet<String> = all.iter().map(|path| module_of(path)).filter(|name| name != "lib").collect();
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in &all {
        let module = module_of(path);
        // A file that only tests use says so in its parent.
        let is_test = path.file_stem().is_some_and(|name| name == "twin");
        if module == "lib" || is_test {
            continue;
        }
        let text = code(&fs::read_to_string(path).unwrap());
        let mut targets: Vec<String> = Vec::new();
        for (at, _) in text.match_indices("crate::") {
            let rest = &text[at + "crate::".len()..];
            if let Some(list) = rest.strip_prefix('{') {
                let end = list.find(';').unwrap_or(list.len());
                targets.extend(list[..end].split([',', '{', '}']).map(|item| item.trim().to_owned()));
            } else {
                targets.push(rest.to_owned());
            }
        }
        for target in targets {
            let first: String = target.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let target = names.get(&first).unwrap_or(&first);
            if modules.contains(target) && *target != module {
                graph.entry(module.clone()).or_default().insert(target.clone());
            }
        }
    }
    graph
}

/// A cycle, if there is one: modules that import each other in turn.
fn cycle(graph: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn visit(
        at: &str,
        graph: &BTreeMap<String, BTreeSet<String>>,
        way: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(start) = way.iter().position(|module| module == at) {
            return Some(way[start..].to_vec());
        }
        if !done.insert(at.to_owned()) {
            return None;
        }
        way.push(at.to_owned());
        let found = graph.get(at).into_iter().flatten().find_map(|next| visit(next, graph, way, done));
        way.pop();
        found
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|module| visit(module, graph, &mut Vec::new(), &mut done))
}

#[test]
fn top_level_modules_have_no_cycles() {
    let graph = imports();
    // The reader of the sources works: some edges that must be there.
    for (from, to) in [("forest", "tree"), ("tree", "process"), ("ridge", "features"), ("points", "error")] {
        assert!(graph[from].contains(to), "{from} imports {to}");
    }
    assert_eq!(cycle(&graph), None, "{graph:#?}");
}

#[test]
fn a_cycle_is_found() {
    let edge = |from: &str, to: &str| (from.to_owned(), BTreeSet::from([to.to_owned()]));
    let graph = BTreeMap::from([edge("a", "b"), edge("b", "c"), edge("c", "b")]);
    assert_eq!(cycle(&graph), Some(vec!["b".to_owned(), "c".to_owned()]));
}

/// What a user of the library can name: re-exports of the root, the public module, and its own. The aim is 80; a smaller
/// number belongs here whenever items are taken away.
#[test]
fn the_public_interface_does_not_grow() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(source.join("lib.rs")).unwrap();
    let process = fs::read_to_string(source.join("process/mod.rs")).unwrap();
    let root = root_names(&lib);
    let mut items: Vec<String> = root.keys().cloned().collect();
    for statement in statements(&process, "pub use ") {
        items.extend(leaves(statement));
    }
    let modules = |text: &str| statements(text.split("pub mod internals").next().unwrap_or(text), "pub mod ").len();
    assert_eq!((modules(&lib), modules(&process)), (1, 0), "public modules besides `process`");
    assert!((40..=95).contains(&items.len()), "{}: {items:?}", items.len());
}
