//! Builds the plugins that a recipe names; what goes wrong is said of the recipe.

use std::path::Path;

use ebipla_core::system::device as devices;
use ebipla_core::{DataFacts, Product, Purpose, Random, Registry, Scope, Storage};
use tch::Device;

use super::initial_particles::Dumps;
use crate::recipe::ParticleDevice;
use crate::{Problem, Recipe, RecipeError};

/// The device that the recipe asks for.
pub fn device(recipe: &Recipe) -> Result<Device, RecipeError> {
    devices::resolve(&recipe.run.device).map_err(|error| {
        let origin = recipe.origin("run.device");
        wrong(recipe, Problem::at("run.device", origin, error.to_string()))
    })
}

/// What plugins may know before the first of them is built. The disk of the folder `out` takes what is too much for
/// memory.
pub fn scope<'a>(
    recipe: &Recipe,
    device: Device,
    purpose: Purpose,
    out: &Path,
    random: &'a mut Random,
) -> Scope<'a> {
    Scope {
        purpose,
        device,
        storage: storage(recipe, device, purpose, out),
        dumps: &Dumps,
        random,
        data: DataFacts::default(),
        latent_dim: 0,
        sigma: recipe.decoder.sigma,
        batch_size: recipe.run.batch_size,
    }
}

fn storage(recipe: &Recipe, device: Device, purpose: Purpose, out: &Path) -> Storage {
    let particles = &recipe.run.particles;
    let storage = match particles.device {
        ParticleDevice::Model => Storage::on(device),
        ParticleDevice::Cpu => Storage::on(device).in_main_memory(),
    };
    match purpose {
        Purpose::Start | Purpose::Restore => storage.with_budget(particles.memory, out),
        Purpose::Trial => storage,
    }
}

/// Builds the plugin of the section that is called like its kind.
pub fn build_of_kind<T: Product + ?Sized>(
    recipe: &Recipe,
    registry: &Registry,
    scope: &mut Scope,
) -> Result<Box<T>, RecipeError> {
    let section = T::KIND.name();
    build(section, recipe, registry, scope)?
        .ok_or_else(|| wrong(recipe, Problem::at(section, None, "the section is missing")))
}

/// Builds the plugin that a section names, if the recipe has that section.
pub fn build<T: Product + ?Sized>(
    section: &str,
    recipe: &Recipe,
    registry: &Registry,
    scope: &mut Scope,
) -> Result<Option<Box<T>>, RecipeError> {
    let Some((name, options)) = recipe.plugin(section) else {
        return Ok(None);
    };
    let built = registry.build::<T>(name, &options, scope).map_err(|error| {
        let origin = recipe.origin(&format!("{section}.name"));
        wrong(recipe, Problem::at(section, origin, chain(&error)))
    })?;
    Ok(Some(built))
}

/// One problem of this recipe.
pub fn wrong(recipe: &Recipe, problem: Problem) -> RecipeError {
    RecipeError::one(recipe.name.clone(), problem)
}

/// An error with all its causes.
pub fn chain(error: &anyhow::Error) -> String {
    format!("{error:#}")
}
