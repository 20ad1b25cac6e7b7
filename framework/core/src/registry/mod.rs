//! Finds what the linked crates have registered, and builds plugins by name.

mod kind;
mod limits;
mod only_with;
mod options;
mod plugin;

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::Value;

use crate::Better;

pub use kind::{Kind, Product};
pub use only_with::OnlyWith;
pub use options::{OptionSpec, OptionType};
pub use plugin::{Complaint, DataFacts, ParticleSource, Plugin, Purpose, Registration, Scope};

/// The options of any config struct.
pub fn options_of_type<T: schemars::JsonSchema>() -> Vec<OptionSpec> {
    options::options_of(plugin::schema_of::<T>().as_value())
}

/// Every registered plugin, sorted by kind and name.
pub struct Registry {
    entries: BTreeMap<(Kind, &'static str), &'static Registration>,
}

/// What is wrong with the set of linked plugin crates.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Two crates claim the same name, and neither may win silently.
    #[error(
        "two plugins are called {kind} `{name}`: one of crate `{first}` ({first_type}), one of crate `{second}` \
         ({second_type}); rename one of them, or link only one of the crates"
    )]
    Duplicate {
        kind: Kind,
        name: &'static str,
        first: &'static str,
        first_type: &'static str,
        second: &'static str,
        second_type: &'static str,
    },
    /// Nothing of this kind is linked, so no recipe can run.
    #[error(
        "no {kind} is registered: a plugin crate that nothing refers to is dropped by the linker; \
         write `use the_crate as _;` in your main.rs (for ours: `use ebipla_plugins as _; use ebipla_datasets as _;`)"
    )]
    Empty { kind: Kind },
}

impl Registry {
    /// Collects what is linked into this program.
    pub fn collect() -> Result<Self, RegistryError> {
        Self::from_registrations(inventory::iter::<Registration>())
    }

    fn from_registrations(
        registrations: impl IntoIterator<Item = &'static Registration>,
    ) -> Result<Self, RegistryError> {
        let mut entries: BTreeMap<_, &'static Registration> = BTreeMap::new();
        for found in registrations {
            if let Some(earlier) = entries.insert((found.kind, found.name), found) {
                // inventory's order is unspecified: name the two in a fixed one.
                let mut pair = [earlier, found];
                pair.sort_by_key(|entry| entry.type_name());
                return Err(RegistryError::Duplicate {
                    kind: found.kind,
                    name: found.name,
                    first: pair[0].crate_name(),
                    first_type: pair[0].type_name(),
                    second: pair[1].crate_name(),
                    second_type: pair[1].type_name(),
                });
            }
        }
        for kind in Kind::ALL {
            if !entries.keys().any(|(present, _)| *present == kind) {
                return Err(RegistryError::Empty { kind });
            }
        }
        Ok(Self { entries })
    }

    /// All plugins of one kind, by name.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &'static Registration> + '_ {
        self.entries
            .iter()
            .filter(move |((present, _), _)| *present == kind)
            .map(|(_, entry)| *entry)
    }

    /// The names of one kind, sorted.
    pub fn names(&self, kind: Kind) -> Vec<&'static str> {
        self.of_kind(kind).map(|entry| entry.name).collect()
    }

    /// One plugin, if there is one of that name.
    pub fn find(&self, kind: Kind, name: &str) -> Option<&'static Registration> {
        self.of_kind(kind).find(|entry| entry.name == name)
    }

    /// Which values of a metric's number are better, as the metric says. Behind a slash stands which of its numbers it
    /// is.
    pub fn better(&self, number: &str) -> Option<Better> {
        let metric = number.split('/').next()?;
        self.find(Kind::Metric, metric)?.better(number)
    }

    /// Builds the plugin `name` from its options, which have been validated.
    pub fn build<T: Product + ?Sized>(
        &self,
        name: &str,
        options: &Value,
        scope: &mut Scope,
    ) -> anyhow::Result<Box<T>> {
        let entry = self
            .find(T::KIND, name)
            .with_context(|| format!("no {} is called `{name}`", T::KIND))?;
        let built = entry
            .build(options, scope)
            .with_context(|| format!("building {} `{name}`", T::KIND))?;
        // A registration's kind and the type it builds come from the same associated type.
        built
            .downcast::<Box<T>>()
            .map(|boxed| *boxed)
            .map_err(|_| anyhow::anyhow!("{} `{name}` built something else", T::KIND))
    }
}
