//! Embeds the recipes of these plugins in every program that links this crate.

use ebipla_core::{ShippedRecipes, inventory};

inventory::submit! { ShippedRecipes(include!(concat!(env!("OUT_DIR"), "/recipes.rs"))) }
