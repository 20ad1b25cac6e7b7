//! The recipes that the bench runs, changed so that they need no files and take the threads that it is told to.

use ebipla_core::Registry;
use ebipla_core::system::device;
use tch::Device;

use crate::recipe::{Override, RecipeFolders, Request};
use crate::{Recipe, RecipeError};

/// What all parts of the bench go by.
pub struct Settings<'a> {
    pub registry: &'a Registry,
    pub folders: RecipeFolders,
    pub device: Device,
    pub threads: i32,
    /// How often everything is measured.
    pub rounds: usize,
}

impl Settings<'_> {
    /// A recipe of ours with some values changed.
    pub fn recipe(&self, name: &str, changes: &[(&str, String)]) -> Result<Recipe, RecipeError> {
        let own = [
            ("run.device", device::name(self.device)),
            ("run.threads", self.threads.to_string()),
        ];
        let set = own.iter().chain(changes);
        let request = Request {
            recipe: name.to_owned(),
            set: set
                .map(|(key, value)| Override::by_option("bench", *key, value))
                .collect(),
            folders: self.folders.clone(),
        };
        Recipe::load(&request, self.registry)
    }
}

/// Made-up images of this size instead of a recipe's own data.
pub fn made_up(images: usize, side: u32) -> [(&'static str, String); 1] {
    let blobs = format!("{{ name: blobs, size: {images}, image_size: {side}, channels: 3 }}");
    [("dataset", blobs)]
}
