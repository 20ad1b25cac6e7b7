//! The recipes that come with these plugins, as part of every program that links them.

use ebipla_core::{ShippedRecipes, inventory};

inventory::submit! { ShippedRecipes(include!(concat!(env!("OUT_DIR"), "/recipes.rs"))) }
