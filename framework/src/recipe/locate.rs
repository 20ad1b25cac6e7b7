//! Finds recipe and sweep files by path or by name.

use std::path::{Path, PathBuf};

use super::{Problem, RecipeError};

/// The folders in which recipe names are looked up, first match first.
#[derive(Clone, Debug, Default)]
pub struct RecipeFolders(pub Vec<PathBuf>);

/// Finds `recipe`: a path, or a name in one of the folders, with or without `.yaml`. It is called a `what`.
pub fn find(what: &str, recipe: &str, folders: &RecipeFolders) -> Result<PathBuf, RecipeError> {
    let spelled = [recipe.to_owned(), format!("{recipe}.yaml")];
    let places = std::iter::once(PathBuf::new()).chain(folders.0.iter().cloned());
    for place in places {
        if let Some(path) = spelled
            .iter()
            .map(|name| place.join(name))
            .find(|path| path.is_file())
        {
            return Ok(path);
        }
    }
    let names = recipe_names(folders);
    let looked: Vec<_> = folders
        .0
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    let message = format!(
        "no such {what}: not a file, and not a name in {}",
        looked.join(" or ")
    );
    let bare = recipe.trim_end_matches(".yaml");
    let problem = Problem::at("", None, message).with_names(bare, names.iter().map(String::as_str));
    Err(RecipeError::one(recipe, problem))
}

/// The names of all recipes in the folders, sorted. Files in `bases/` are parts, not recipes.
pub fn recipe_names(folders: &RecipeFolders) -> Vec<String> {
    let mut names: Vec<_> = folders
        .0
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|path| path.is_file() && path.extension().is_some_and(|ending| ending == "yaml"))
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
