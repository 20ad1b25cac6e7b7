//! Passes a model's samples and training images to a network in batches, converted to the 8-bit images that files would
//! hold.

use ebipla_core::{Task, prelude::*};
use tch::{Device, Kind};

use super::Network;

/// Prior chains that run at a time. It affects the samples, so it is not an option.
const CHAINS: i64 = 1000;

/// Facts to report with a number that compares samples with training images: `weights` are the file's name and SHA-256.
pub fn facts_of_comparison(
    subject: &Subject,
    weights: &[String; 2],
    samples: u32,
    reference: Option<u32>,
    network: &dyn Network,
) -> Facts {
    let [name, sha256] = weights.clone();
    let reference = Selection::of(subject, reference).describe();
    let facts = [
        ("weights", name.into()),
        ("weights_sha256", sha256.into()),
        ("samples", subject.sample_count(samples.into()).into()),
        ("decoder_noise", false.into()),
        ("reference", reference.into()),
        ("preprocessing", network.preprocessing().into()),
    ];
    facts
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect()
}

/// Training images to compare with.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    count: i64,
    of: i64,
}

impl Selection {
    /// Selects `wanted` training images, evenly spread over the set, since it may be sorted; or all of them.
    pub fn of(subject: &Subject, wanted: Option<u32>) -> Self {
        let of = subject.dataset.len(Split::Train) as i64;
        let count = wanted.map_or(of, |wanted| of.min(wanted.into()));
        Self { count, of }
    }

    pub fn count(self) -> i64 {
        self.count
    }

    /// The positions in the set of `count` images from `start` on.
    fn indices(self, start: i64, count: i64) -> Tensor {
        let positions: Vec<_> = (start..start + count)
            .map(|i| (i128::from(i) * i128::from(self.of) / i128::from(self.count)) as i64)
            .collect();
        Tensor::from_slice(&positions)
    }

    /// A description for the facts.
    pub fn describe(self) -> String {
        if self.count == self.of {
            format!("all {} training images", self.of)
        } else {
            format!("{} of {} training images, evenly spread", self.count, self.of)
        }
    }
}

/// A source of batches of 8-bit images with three channels.
#[derive(Clone, Copy, Debug)]
pub struct Images {
    /// Images in a batch.
    pub batch: i64,
}

impl Images {
    /// Passes all selected training images to `each`, in order.
    pub fn of_data(
        self,
        what: &str,
        subject: &Subject,
        selection: Selection,
        mut each: impl FnMut(&Tensor) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut task = Task::start(what, selection.count as u64);
        for start in (0..selection.count).step_by(self.batch as usize) {
            let count = self.batch.min(selection.count - start);
            let images = subject
                .dataset
                .get(Split::Train, &selection.indices(start, count))?;
            each(&eight_bit(&images.to_device(subject.device)))?;
            task.advance(count as u64);
        }
        Ok(())
    }

    /// Passes `n` samples of the model to `each`: g(x) for latents of the prior sampler, without the decoder's noise,
    /// as in the papers. Stops and returns false if samples are not finite.
    pub fn of_model(
        self,
        what: &str,
        subject: &mut Subject,
        n: i64,
        mut each: impl FnMut(&Tensor) -> anyhow::Result<()>,
    ) -> anyhow::Result<bool> {
        let _guard = tch::no_grad_guard();
        let mut task = Task::start(what, n as u64);
        for (block, start) in (0..n).step_by(CHAINS as usize).enumerate() {
            let latents = subject.latents(CHAINS.min(n - start), block as u64)?;
            for latents in latents.split(self.batch, 0) {
                let images = subject.model.generator.generate(&latents);
                if i64::try_from(images.isfinite().all())? == 0 {
                    return Ok(false);
                }
                each(&eight_bit(&images))?;
                task.advance(images.size()[0] as u64);
            }
        }
        Ok(true)
    }
}

/// Images in [−1, 1] as stored in a PNG file: clamped and rounded to 8 bits. Grey becomes red, green and blue.
fn eight_bit(images: &Tensor) -> Tensor {
    let levels = (images * 127.5 + 128.0).clamp(0.0, 255.0).to_kind(Kind::Uint8);
    levels.expand([-1, 3, -1, -1], false)
}

/// The bytes of 8-bit images.
pub fn bytes(images: &Tensor) -> anyhow::Result<Vec<u8>> {
    Ok(Vec::try_from(
        images.to_device(Device::Cpu).contiguous().view(-1),
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// −1 is black and 1 is white, 0 rounds up to 128, and values beyond are clamped.
    #[test]
    fn converts_to_eight_bits_as_in_a_file() {
        let grey = Tensor::from_slice(&[-1f32, 1.0, 0.0, -7.0, 1.01, 0.5]).view([1, 1, 2, 3]);
        let expected = Tensor::from_slice(&[0u8, 255, 128, 0, 255, 191]).view([1, 1, 2, 3]);
        assert!(eight_bit(&grey).equal(&expected.expand([1, 3, 2, 3], false)));
    }

    #[test]
    fn every_level_survives_a_round_trip() {
        let levels = Tensor::arange(256, (Kind::Uint8, Device::Cpu)).view([1, 1, 16, 16]);
        let images = levels.to_kind(Kind::Float) / 127.5 - 1.0;
        assert!(eight_bit(&images).narrow(1, 0, 1).equal(&levels));
    }

    #[test]
    fn a_selection_is_spread_over_the_set() {
        let selection = Selection { count: 4, of: 10 };
        assert!(
            selection
                .indices(0, 4)
                .equal(&Tensor::from_slice(&[0i64, 2, 5, 7]))
        );
        assert!(selection.indices(2, 2).equal(&Tensor::from_slice(&[5i64, 7])));
        let all = Selection { count: 10, of: 10 };
        assert!(all.indices(3, 2).equal(&Tensor::from_slice(&[3i64, 4])));
    }
}
