//! Finds recipe and sweep files by path or by name.

use std::path::{Path, PathBuf};

use super::{Problem, RecipeError, shipped};

/// The folders in which recipe names are looked up, first match first.
#[derive(Clone, Debug, Default)]
pub struct RecipeFolders(pub Vec<PathBuf>);

/// Finds `recipe`: a path, or a name in one of the folders, with or without `.yaml`. It is called a `what`.
pub fn find(what: &str, recipe: &str, folders: &RecipeFolders) -> Result<PathBuf, RecipeError> {
    find_from(what, Path::new(""), recipe, folders).map_err(|problem| RecipeError::one(recipe, *problem))
}

/// The same where paths are relative to `place`.
pub fn find_from(
    what: &str,
    place: &Path,
    recipe: &str,
    folders: &RecipeFolders,
) -> Result<PathBuf, Box<Problem>> {
    let places = std::iter::once(place).chain(folders.0.iter().map(PathBuf::as_path));
    let spelled = [recipe.to_owned(), format!("{recipe}.yaml")];
    let mut paths = places.flat_map(|place| spelled.each_ref().map(|name| place.join(name)));
    if let Some(path) = paths.find(|path| shipped::is_file(path)) {
        return Ok(path);
    }
    let names = recipe_names(folders);
    let looked: Vec<_> = folders
        .0
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    let message = match looked.is_empty() {
        true => format!("no such {what}: {recipe} is not a file"),
        false => format!(
            "no such {what}: {recipe} is not a file, and not a name in {}",
            looked.join(" or ")
        ),
    };
    let bare = recipe.trim_end_matches(".yaml");
    let problem = Problem::at("", None, message);
    Err(Box::new(
        problem.with_names(bare, names.iter().map(String::as_str)),
    ))
}

/// The names of all recipes in the folders, sorted. Files in `bases/` are parts, not recipes.
pub fn recipe_names(folders: &RecipeFolders) -> Vec<String> {
    let mut names: Vec<_> = folders
        .0
        .iter()
        .flat_map(|folder| shipped::files_in(folder))
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .filter_map(|path| stem(&path))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// What a recipe is called: as its file, or as the run in whose folder it lies resolved, as recipe.yaml.
pub fn name(path: &Path) -> String {
    let name = stem(path).unwrap_or_default();
    match &name[..] {
        "recipe" => name_of_run(path).unwrap_or(name),
        _ => name,
    }
}

/// The NAME of a folder that is called NAME-HASH-sSEED, or NAME-HASH-sSEED-2 and so on.
fn name_of_run(recipe: &Path) -> Option<String> {
    let recipe = std::path::absolute(recipe).ok()?;
    let folder = recipe.parent()?.file_name()?.to_str()?;
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    let folder = match folder.rsplit_once('-')? {
        (folder, attempt) if is_number(attempt) => folder,
        _ => folder,
    };
    let (rest, seed) = folder.rsplit_once('-')?;
    let (name, hash) = rest.rsplit_once('-')?;
    let is_run = seed.strip_prefix('s').is_some_and(is_number) && hash.len() == 8;
    is_run.then(|| name.to_owned())
}

/// A file's name without its ending.
pub fn stem(path: &Path) -> Option<String> {
    Some(path.file_stem()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resolved_recipe_is_called_as_its_run() {
        for (path, expected) in [
            ("recipes/swiss_roll.yaml", "swiss_roll"),
            ("runs/swiss-roll-0123abcd-s12/recipe.yaml", "swiss-roll"),
            ("runs/swiss_roll-0123abcd-s12-3/recipe.yaml", "swiss_roll"),
            ("mine/recipe.yaml", "recipe"),
            ("a-b-c/recipe.yaml", "recipe"),
        ] {
            assert_eq!(name(Path::new(path)), expected, "{path}");
        }
    }
}
