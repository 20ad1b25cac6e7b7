//! `runner interpolate`: walks in a straight line from the latents of one data point to those of another.

use std::path::Path;

use anyhow::ensure;
use ebipla_core::{Random, Split, require_memory};
use tch::{Device, Kind, Tensor};

use super::arguments::InterpolateCommand;
use super::output::{Format, Shown};
use super::points::{Point, cloud_of, count_of, data_of, map_latents, particles_of};
use super::{Metrics, Trained, load};
use crate::cli::{Misuse, Program, print};
use crate::record::{self, Array, Picture};
use crate::run::Setup;

pub fn interpolate(program: &Program, command: &InterpolateCommand) -> anyhow::Result<()> {
    let run_dir = &command.run.run_dir;
    check(command)?;
    let trained = load(program, run_dir, &command.run.overrides, Metrics::Only(&[]))?;
    let Trained {
        setup, checkpoint, ..
    } = trained;
    let format = Format::of(&command.out, setup.dataset.shape())?;
    let seed = command.map.seed.unwrap_or(setup.recipe.run.seed);
    let mut random = Random::new(seed).fork("interpolate");
    let pairs = pairs(command, &setup, &mut random)?;
    let [from, to] = [0, 1].map(|end| pairs.iter().map(|pair| pair[end]).collect::<Vec<_>>());
    let from = ends(&setup, run_dir, command, &from, 0, &mut random)?;
    let to = ends(&setup, run_dir, command, &to, pairs.len() as u64, &mut random)?;

    let numbers: i64 = setup.dataset.shape().iter().product();
    let points = pairs.len() as u128 * u128::from(command.steps);
    let numbers = points * (numbers + setup.model.generator.latent_dim()) as u128;
    require_memory(
        &format!("{points} interpolations"),
        numbers * (3 * size_of::<f32>()) as u128,
    )?;
    let latents = walk(&from.latents, &to.latents, command.steps.into());
    let decoded = setup.model.mean(&latents.flatten(0, 1).to_device(setup.device));
    let shape = [&latents.size()[..2], &decoded.size()[1..]].concat();
    let decoded = decoded.view(&shape[..]);
    match format {
        Format::Picture(shown) => {
            draw(shown, &setup, &from.data, &decoded, &to.data)?.write_png(&command.out)?
        }
        Format::Npy => record::write_npy(&command.out, Array::of("interpolations", &decoded))?,
        Format::Hdf5 => {
            let arrays = vec![
                Array::of("interpolations", &decoded),
                Array::of("latents", &latents),
                Array::of("from", &from.data),
                Array::of("to", &to.data),
            ];
            let named: Vec<_> = pairs.iter().map(|[from, to]| format!("{from} {to}")).collect();
            let facts = [
                ("checkpoint", checkpoint.display().to_string()),
                ("pairs", named.join(", ")),
            ];
            record::write_hdf5(&command.out, arrays, &facts)?;
        }
    }
    let lines = pairs.iter().map(|[from, to]| format!("{from} → {to}\n"));
    print(&format!(
        "{}{}\n",
        lines.collect::<String>(),
        command.out.display()
    ))
}

fn check(command: &InterpolateCommand) -> Result<(), Misuse> {
    let (from, to) = (command.from.len(), command.to.len());
    if from == 0 && command.pairs.is_none() {
        return Err(Misuse(
            "expected --from and --to, e.g. --from train:3 --to validation:7, or --pairs K".into(),
        ));
    }
    if from != to {
        return Err(Misuse(format!(
            "found {from} times --from but {to} times --to, expected as many of both"
        )));
    }
    Ok(())
}

/// Those that were asked for, or random ones of two different points each.
fn pairs(
    command: &InterpolateCommand,
    setup: &Setup,
    random: &mut Random,
) -> anyhow::Result<Vec<[Point; 2]>> {
    let Some(count) = command.pairs else {
        let pairs = command.from.iter().zip(&command.to);
        return Ok(pairs.map(|(from, to)| [*from, *to]).collect());
    };
    let split = command.split;
    let points = count_of(setup, split)? as i64;
    ensure!(
        points >= 2,
        Misuse(format!("the split `{split}` has one point, which makes no pair"))
    );
    let mut draw = |pair: u32| {
        let drawn = random.stream("pairs", pair.into()).permutation(points);
        [0, 1].map(|end| Point {
            split,
            index: drawn.int64_value(&[end]) as usize,
        })
    };
    Ok((0..count).map(&mut draw).collect())
}

/// Points with their latents, one row each, on the CPU.
struct Ends {
    data: Tensor,
    latents: Tensor,
}

/// Training points have a particle, others a MAP latent; so do training points of a run without particles.
fn ends(
    setup: &Setup,
    run_dir: &Path,
    command: &InterpolateCommand,
    points: &[Point],
    first: u64,
    random: &mut Random,
) -> anyhow::Result<Ends> {
    let (mut data, mut latents) = (Vec::new(), Vec::new());
    for (number, point) in (first..).zip(points) {
        let y = data_of(setup, point.split, &[point.index])?;
        let particles = match point.split {
            Split::Train => particles_of(setup, run_dir)?,
            Split::Validation => None,
        };
        latents.push(match particles {
            Some(dump) => cloud_of(&dump, point.index)?.narrow(0, 0, 1),
            None => map_latents(setup, &command.map.search(), &y, number, random).to_device(Device::Cpu),
        });
        data.push(y.to_device(Device::Cpu));
    }
    Ok(Ends {
        data: Tensor::cat(&data, 0),
        latents: Tensor::cat(&latents, 0),
    })
}

/// `[pairs, steps, latent]`: straight lines, both ends included.
fn walk(from: &Tensor, to: &Tensor, steps: i64) -> Tensor {
    let way = Tensor::linspace(0.0, 1.0, steps, (Kind::Float, Device::Cpu)).view([1, -1, 1]);
    from.unsqueeze(1).lerp_tensor(&to.unsqueeze(1), &way)
}

/// Images: a row for each pair, with the data at both ends. Points: the ways in the plane.
fn draw(
    shown: Shown,
    setup: &Setup,
    from: &Tensor,
    decoded: &Tensor,
    to: &Tensor,
) -> anyhow::Result<Picture> {
    match shown {
        Shown::Images => {
            let rows = Tensor::cat(&[&from.unsqueeze(1), decoded, &to.unsqueeze(1)], 1);
            record::image_grid(&rows.flatten(0, 1), rows.size()[1] as usize)
        }
        Shown::Points => {
            let data = setup.dataset.first(Split::Train, 4000)?;
            record::draw_side_by_side(("data", &data), ("interpolations", &decoded.flatten(0, 1)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_has_both_ends_and_equal_steps() {
        let from = Tensor::from_slice(&[0f32, 2.0, 10.0, 10.0]).view([2, 2]);
        let to = Tensor::from_slice(&[4f32, 0.0, 10.0, 50.0]).view([2, 2]);
        let expected = [
            [[0f32, 2.0], [1.0, 1.5], [2.0, 1.0], [3.0, 0.5], [4.0, 0.0]],
            [
                [10.0, 10.0],
                [10.0, 20.0],
                [10.0, 30.0],
                [10.0, 40.0],
                [10.0, 50.0],
            ],
        ];
        let flat: Vec<_> = expected.iter().flatten().flatten().copied().collect();
        assert!(walk(&from, &to, 5).equal(&Tensor::from_slice(&flat).view([2, 5, 2])));
    }
}
