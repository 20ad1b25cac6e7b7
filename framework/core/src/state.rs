//! Says what of a running experiment must outlive its process.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use tch::{Device, Tensor};

use crate::ParticleStore;

/// Something with a state that changes from step to step.
///
/// The same list serves saving and restoring, so that the two cannot disagree.
pub trait Persistent {
    /// Every part of the state, under names that stay the same.
    fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)>;
}

/// A part of a state.
pub enum Slot<'a> {
    /// A tensor of a fixed shape.
    Tensor(&'a mut Tensor),
    /// Several tensors of fixed shapes; none before the first step.
    List(&'a mut Vec<Tensor>),
    /// A tensor that may be missing.
    Optional(&'a mut Option<Tensor>),
    /// A counter.
    Count(&'a mut i64),
    /// Clouds, which may be too many to keep a copy of.
    Clouds(&'a mut ParticleStore),
}

/// The clouds of a state.
pub fn clouds(state: &mut dyn Persistent) -> impl Iterator<Item = (&'static str, &mut ParticleStore)> {
    state.slots().into_iter().filter_map(|(name, slot)| match slot {
        Slot::Clouds(store) => Some((name, store)),
        _ => None,
    })
}

/// Named tensors on their way to or from a file.
pub type Tensors = BTreeMap<String, Tensor>;

/// Files of a checkpoint that clouds, which have a file of their own, must leave alone.
const TAKEN: [&str; 5] = [
    "energy",
    "generator",
    "energy_average",
    "generator_average",
    "state",
];

/// Refuses names under which a checkpoint could not be restored: a name given twice, one that lies below another, as
/// items of a list do, or one that is taken.
pub fn ensure_distinct(part: &str, state: &mut dyn Persistent) -> anyhow::Result<()> {
    let mut names = Vec::new();
    for (name, slot) in state.slots() {
        ensure!(
            !(matches!(slot, Slot::Clouds(_)) && TAKEN.contains(&name)),
            "the clouds `{name}` in the state of {part} would overwrite {name}.safetensors: give the slot another name"
        );
        names.push(name);
    }
    names.sort_unstable();
    for (i, name) in names.iter().enumerate() {
        for other in &names[i + 1..] {
            match other.strip_prefix(name) {
                Some("") => bail!(
                    "two slots of the state of {part} are called `{name}`: each needs a name of its own, or no \
                     checkpoint could be restored"
                ),
                Some(rest) if rest.starts_with('.') => bail!(
                    "the slot `{other}` of the state of {part} lies below the slot `{name}`: choose a name that \
                     does not begin with `{name}.`"
                ),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Copies all of a state but its clouds, each name behind `prefix`.
pub fn collect(prefix: &str, state: &mut dyn Persistent) -> Tensors {
    let mut all = Tensors::new();
    for (name, slot) in state.slots() {
        let name = format!("{prefix}.{name}");
        match slot {
            Slot::Tensor(tensor) => {
                all.insert(name, tensor.detach());
            }
            Slot::List(tensors) => {
                let named = tensors.iter().enumerate();
                all.extend(named.map(|(i, tensor)| (format!("{name}.{i}"), tensor.detach())));
            }
            Slot::Optional(tensor) => {
                all.extend(tensor.iter().map(|tensor| (name.clone(), tensor.detach())));
            }
            Slot::Count(count) => {
                all.insert(name, Tensor::from_slice(&[*count]));
            }
            Slot::Clouds(_) => {}
        }
    }
    all
}

/// Puts back what [`collect`] has taken, and takes it out of `from`. New tensors go to `device`.
pub fn restore(
    prefix: &str,
    state: &mut dyn Persistent,
    from: &mut Tensors,
    device: Device,
) -> anyhow::Result<()> {
    for (name, slot) in state.slots() {
        let name = format!("{prefix}.{name}");
        match slot {
            Slot::Tensor(tensor) => put(tensor, take(from, &name)?, &name)?,
            Slot::List(tensors) if tensors.is_empty() => {
                let found = (0..).map_while(|i| from.remove(&format!("{name}.{i}")));
                tensors.extend(found.map(|tensor| tensor.to_device(device)));
            }
            Slot::List(tensors) => {
                for (i, tensor) in tensors.iter_mut().enumerate() {
                    let name = format!("{name}.{i}");
                    put(tensor, take(from, &name)?, &name)?;
                }
            }
            Slot::Optional(tensor) => *tensor = from.remove(&name).map(|tensor| tensor.to_device(device)),
            Slot::Count(count) => {
                let mut value = Tensor::from_slice(&[0i64]);
                put(&mut value, take(from, &name)?, &name)?;
                *count = value.int64_value(&[0]);
            }
            Slot::Clouds(_) => {}
        }
    }
    Ok(())
}

fn take(from: &mut Tensors, name: &str) -> anyhow::Result<Tensor> {
    from.remove(name).with_context(|| format!("it has no `{name}`"))
}

fn put(to: &mut Tensor, value: Tensor, name: &str) -> anyhow::Result<()> {
    ensure!(
        (value.size(), value.kind()) == (to.size(), to.kind()),
        "`{name}` is {:?} {:?}, expected {:?} {:?}",
        value.kind(),
        value.size(),
        to.kind(),
        to.size()
    );
    tch::no_grad(|| to.copy_(&value));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static [&'static str], Vec<i64>);

    impl Persistent for Named {
        fn slots(&mut self) -> Vec<(&'static str, Slot<'_>)> {
            let named = self.0.iter().zip(&mut self.1);
            named.map(|(name, count)| (*name, Slot::Count(count))).collect()
        }
    }

    #[test]
    fn slots_of_one_name_are_refused() {
        let refusal = |names: &'static [&'static str]| {
            let found = ensure_distinct("the algorithm", &mut Named(names, vec![0; names.len()]));
            found.err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(refusal(&["first", "firsts", "second"]), "");
        let twice = refusal(&["moment", "steps", "moment"]);
        assert!(
            twice.contains("two slots of the state of the algorithm are called `moment`"),
            "{twice}"
        );
        let below = refusal(&["moment.0", "moment"]);
        assert!(below.contains("`moment.0`") && below.contains("below"), "{below}");
    }
}
