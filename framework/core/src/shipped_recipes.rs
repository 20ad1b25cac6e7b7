//! Recipes that a crate brings along, so that they are found wherever the program is installed.

/// Recipes and sweeps that a crate brings along: the path of each below a folder `recipes/`, and its text.
pub struct ShippedRecipes(pub &'static [(&'static str, &'static str)]);

inventory::collect!(ShippedRecipes);
