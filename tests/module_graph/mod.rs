//! Reads from a crate's sources which module uses which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Modules, each a file, and those that it uses. Re-exports count as the module that they come from, and tests do not
/// count.
pub struct ModuleGraph {
    uses: BTreeMap<String, BTreeSet<String>>,
}

/// Where a name that a module re-exports comes from.
type Reexports = BTreeMap<(String, String), String>;

impl ModuleGraph {
    /// Of the crate with these sources.
    pub fn of(src: &Path) -> Self {
        let mut sources = BTreeMap::new();
        read(src, "", &mut sources);
        let mut reexports = Reexports::new();
        for (module, text) in &sources {
            for (leaf, _) in statements(text).filter(|(_, public)| *public).flat_map(expanded) {
                let (path, name) = leaf.split_once(" as ").unwrap_or_else(|| {
                    let name = leaf.rsplit("::").next().unwrap_or(&leaf);
                    (&leaf, name)
                });
                // What a prelude re-exports again comes from the same place.
                reexports
                    .entry((module.clone(), name.to_owned()))
                    .or_insert_with(|| absolute(module, path));
            }
        }
        let mut uses = BTreeMap::new();
        for (module, text) in &sources {
            let imported = statements(text).filter(|(_, public)| !public).flat_map(expanded);
            let mut paths: Vec<_> = imported.map(|(leaf, _)| leaf).collect();
            paths.extend(inline_paths(text));
            let local = paths.iter().filter(|path| {
                ["crate::", "super::", "self::"]
                    .iter()
                    .any(|start| path.starts_with(start))
            });
            let used = local.map(|path| {
                definer(
                    &absolute(module, path.split(" as ").next().unwrap_or(path)),
                    &sources,
                    &reexports,
                    8,
                )
            });
            let others = used.filter(|used| used != module && !used.is_empty());
            uses.insert(module.clone(), others.collect());
        }
        uses.remove("");
        Self { uses }
    }

    /// How many uses there are.
    pub fn edges(&self) -> usize {
        self.uses.values().map(BTreeSet::len).sum()
    }

    /// The same between the modules at the root of the crate.
    pub fn by_folder(&self) -> Self {
        let top = |module: &str| module.split("::").next().unwrap_or(module).to_owned();
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (module, used) in &self.uses {
            let others = used
                .iter()
                .map(|used| top(used))
                .filter(|used| *used != top(module));
            uses.entry(top(module)).or_default().extend(others);
        }
        Self { uses }
    }

    /// Groups of modules each of which needs all others of its group.
    pub fn cycles(&self) -> Vec<Vec<String>> {
        let mut left: BTreeSet<&String> = self.uses.keys().collect();
        let mut found = Vec::new();
        while let Some(module) = left.pop_first() {
            let reached = self.reached(module);
            let group: Vec<_> = reached
                .iter()
                .filter(|other| *other == module || self.reached(other).contains(module))
                .cloned()
                .collect();
            if reached.contains(module) {
                left.retain(|other| !group.contains(other));
                found.push(group);
            }
        }
        found
    }

    /// What a module needs, and what that needs, and so on.
    fn reached(&self, module: &str) -> BTreeSet<String> {
        let mut reached = BTreeSet::new();
        let mut waiting = vec![module];
        while let Some(module) = waiting.pop() {
            for used in self.uses.get(module).into_iter().flatten() {
                if reached.insert(used.clone()) {
                    waiting.push(used);
                }
            }
        }
        reached
    }
}

/// Adds the text of each module below a folder, without comments and tests.
fn read(folder: &Path, prefix: &str, sources: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let name = |stem: &str| {
            if prefix.is_empty() {
                stem.to_owned()
            } else {
                format!("{prefix}::{stem}")
            }
        };
        if path.is_dir() {
            read(&path, &name(stem), sources);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let module = match stem {
                "lib" | "mod" => prefix.to_owned(),
                stem => name(stem),
            };
            let text = fs::read_to_string(&path).unwrap();
            let text: Vec<_> = text
                .lines()
                .map(|line| line.split("//").next().unwrap_or(""))
                .collect();
            let text = text.join("\n");
            let tests = text.find("#[cfg(test)]\nmod tests");
            sources.insert(module, text[..tests.unwrap_or(text.len())].to_owned());
        }
    }
}

/// What `use` statements say, and whether they re-export it.
fn statements(text: &str) -> impl Iterator<Item = (String, bool)> {
    text.split(';').filter_map(|statement| {
        let (before, tree) = statement.rsplit_once("use ")?;
        let before = before.trim_end();
        let is_statement =
            before.is_empty() || before.ends_with(['{', '}', ']', ')']) || before.ends_with("pub");
        let tree: String = tree.split_whitespace().collect::<Vec<_>>().join(" ");
        is_statement.then(|| (tree, before.ends_with("pub") || before.ends_with("pub(crate)")))
    })
}

/// The paths of a use tree, one for each name.
fn expanded((tree, public): (String, bool)) -> Vec<(String, bool)> {
    leaves(&tree).into_iter().map(|leaf| (leaf, public)).collect()
}

fn leaves(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((start, rest)) = tree.split_once('{') else {
        return vec![tree.to_owned()];
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let mut depth = 0;
    let parts = inner.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    let parts = parts.map(str::trim).filter(|part| !part.is_empty());
    parts
        .flat_map(leaves)
        .map(|leaf| match leaf.as_str() {
            "self" => start.trim_end_matches("::").to_owned(),
            leaf => format!("{start}{leaf}"),
        })
        .collect()
}

/// Paths like `crate::a::B` outside of `use` statements.
fn inline_paths(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = text.split(|c: char| !is_part(c));
    let paths = words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
    paths.map(|path| path.trim_end_matches(':').to_owned()).collect()
}

/// A path from the root of the crate.
fn absolute(module: &str, path: &str) -> String {
    if let Some(path) = path.strip_prefix("crate::") {
        return path.to_owned();
    }
    let mut base: Vec<_> = module.split("::").filter(|part| !part.is_empty()).collect();
    let mut path = path.strip_prefix("self::").unwrap_or(path);
    while let Some(rest) = path.strip_prefix("super::") {
        base.pop();
        path = rest;
    }
    base.push(path);
    base.join("::")
}

/// The module that defines what a path names.
fn definer(path: &str, sources: &BTreeMap<String, String>, reexports: &Reexports, hops: u32) -> String {
    let parts: Vec<_> = path.split("::").collect();
    for length in (0..=parts.len()).rev() {
        let module = parts[..length].join("::");
        if !sources.contains_key(&module) {
            continue;
        }
        let from = parts
            .get(length)
            .and_then(|name| reexports.get(&(module.clone(), (*name).to_owned())));
        return match from {
            Some(from) if hops > 0 => {
                let rest = parts[length + 1..].iter().map(|part| format!("::{part}"));
                definer(
                    &(from.clone() + &rest.collect::<String>()),
                    sources,
                    reexports,
                    hops - 1,
                )
            }
            _ => module,
        };
    }
    String::new()
}
