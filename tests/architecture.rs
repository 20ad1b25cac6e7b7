//! The boundaries between crates and modules: what may know what.
#![allow(clippy::unwrap_used)]

mod module_graph;

use std::fs;
use std::path::Path;

use module_graph::ModuleGraph;

fn crate_root(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The direct dependencies of a crate, from its manifest.
fn dependencies(name: &str) -> Vec<String> {
    let manifest = fs::read_to_string(crate_root(name).join("Cargo.toml")).unwrap();
    let section = manifest.split("[dependencies]\n").nth(1).unwrap();
    let section = section.split("\n[").next().unwrap();
    let names = section.lines().filter_map(|line| line.split(['.', ' ']).next());
    names
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// A plugin author builds what core depends on. What only the program needs stays out of it.
#[test]
fn core_knows_nothing_of_command_lines_files_and_drawing() {
    let found = dependencies("framework/core");
    let kept_out = [
        "clap",
        "figment",
        "hdf5",
        "image",
        "plotters",
        "tensorboard-rs",
        "ureq",
        "ebipla-runner",
    ];
    for name in kept_out {
        assert!(!found.iter().any(|found| found == name), "{name}");
    }
    assert!(found.len() <= 15, "{} dependencies: {found:?}", found.len());
}

#[test]
fn plugins_and_data_sets_know_core_alone() {
    for name in ["plugins", "datasets"] {
        let found = dependencies(name);
        let ours: Vec<_> = found.iter().filter(|name| name.starts_with("ebipla")).collect();
        assert_eq!(ours, ["ebipla-core"], "{name}");
    }
}

#[test]
fn no_module_needs_itself() {
    for name in ["framework/core", "framework/runner"] {
        let graph = ModuleGraph::of(&crate_root(name).join("src"));
        assert!(graph.edges() > 10, "{name}: the graph was not found");
        assert_eq!(graph.by_folder().cycles(), Vec::<Vec<String>>::new(), "{name}");
    }
    let files = ModuleGraph::of(&crate_root("framework/core").join("src"));
    assert_eq!(files.cycles(), Vec::<Vec<String>>::new(), "between files of core");
}

/// The test itself: a cycle that is there is found, also through a re-export.
#[test]
fn cycles_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "lib.rs",
        "mod a;\nmod b;\nmod c;\npub use b::inner::{self, Thing};\n",
    );
    write("a.rs", "use crate::{\n    Thing,\n    c::Other,\n};\n");
    write("b/mod.rs", "pub mod inner;\n");
    write("b/inner.rs", "pub struct Thing(super::super::a::Back);\n");
    write(
        "c.rs",
        "pub struct Other;\n#[cfg(test)]\nmod tests {\n    use crate::a::Back;\n}\n",
    );
    let graph = ModuleGraph::of(folder.path());
    assert_eq!(graph.cycles(), [["a", "b::inner"]]);
    assert_eq!(graph.by_folder().cycles(), [["a", "b"]]);
}
