//! Finds recipe and sweep files by path or by name.

use std::path::{Path, PathBuf};

use super::{Problem, RecipeError, shipped};

/// The folders in which recipe names are looked up, first match first.
#[derive(Clone, Debug, Default)]
pub struct RecipeFolders(pub Vec<PathBuf>);

/// Finds `recipe`: a path, or a name in one of the folders, with or without `.yaml`. It is called a `what`.
pub fn find(what: &str, recipe: &str, folders: &RecipeFolders) -> Result<PathBuf, RecipeError> {
    find_from(what, Path::new(""), recipe, folders).map_err(|problem| RecipeError::one(recipe, problem))
}

/// The same where paths are relative to `place`.
pub fn find_from(
    what: &str,
    place: &Path,
    recipe: &str,
    folders: &RecipeFolders,
) -> Result<PathBuf, Problem> {
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
    Err(Problem::at("", None, message).with_names(bare, names.iter().map(String::as_str)))
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

/// A file's name without its ending.
pub fn stem(path: &Path) -> Option<String> {
    Some(path.file_stem()?.to_string_lossy().into_owned())
}
