//! Fréchet distances between the features of a model's samples and of training images, FID among them.

mod distance;
mod moments;
mod reference;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::path::PathBuf;

use anyhow::ensure;
use ebipla_core::{cache_folder, prelude::*};
use sha2::{Digest, Sha256};

use super::image_features::{
    Architecture, Images, Network, Selection, WeightsFile, bytes, facts_of_comparison, hex,
};
use distance::squared_distance;
use moments::{Moments, Sums};

/// Of `pt_inception-2015-12-05-6726825d.pth`: no other file makes a Fréchet distance a FID.
const GENUINE: &str = "6726825d0af5f729cebd5821db510b11b1cfad8faad88a03f1befd49fb9129b2";

/// What the three metrics have in common.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Comparison {
    /// File with the network's weights; null takes the one that EBIPLA_INCEPTION or EBIPLA_VGG16 names.
    weights: Option<String>,
    /// Samples of the model, without decoder noise; the papers take 50,000. [images]
    #[schemars(range(min = 2))]
    samples: u32,
    /// Training images to compare with, evenly spread over the set; null takes all of them. [images]
    #[schemars(range(min = 2))]
    reference: Option<u32>,
    /// Images that go through the network at a time. [images]
    #[schemars(range(min = 1, max = 512))]
    batch: u32,
}

impl Default for Comparison {
    fn default() -> Self {
        Self {
            weights: None,
            samples: 50_000,
            reference: None,
            batch: 50,
        }
    }
}

/// Fréchet Inception distance (FID) between samples of the model and training images, by the pipeline of pytorch-fid.
///
/// It runs only with the genuine weights, pt_inception-2015-12-05-6726825d.pth. Images are rounded to 8 bits, as in
/// files; grey ones get three equal channels.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Fid(Comparison);

/// The pipeline of FID with any weights for its network: not a FID, and not to be compared with one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct FrechetInception(Comparison);

/// Fréchet distance between VGG-16 features of samples and training images: cheap, for comparing our own runs.
///
/// The features are the means of relu5_3 over all positions, at the image's own size.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct FrechetVgg16(Comparison);

impl Plugin for Fid {
    type Builds = dyn Metric;

    fn better(_: &str) -> Option<Better> {
        Some(Better::Lower)
    }

    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Metric>> {
        let weights = Architecture::Inception.weights(self.0.weights.as_deref())?;
        ensure!(
            weights.sha256 == GENUINE,
            "{} is not pt_inception-2015-12-05-6726825d.pth (its SHA-256 is {}, expected {GENUINE}): a distance with \
             other weights is no FID; the metric `frechet_inception` computes it under its own name",
            weights.path.display(),
            weights.sha256
        );
        Frechet::build("fid", self.0, Architecture::Inception, &weights, scope)
    }
}

impl Plugin for FrechetInception {
    type Builds = dyn Metric;

    fn better(_: &str) -> Option<Better> {
        Some(Better::Lower)
    }

    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Metric>> {
        let weights = Architecture::Inception.weights(self.0.weights.as_deref())?;
        Frechet::build(
            "frechet_inception",
            self.0,
            Architecture::Inception,
            &weights,
            scope,
        )
    }
}

impl Plugin for FrechetVgg16 {
    type Builds = dyn Metric;

    fn better(_: &str) -> Option<Better> {
        Some(Better::Lower)
    }

    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Metric>> {
        let weights = Architecture::Vgg16.weights(self.0.weights.as_deref())?;
        Frechet::build("frechet_vgg16", self.0, Architecture::Vgg16, &weights, scope)
    }
}

/// A Fréchet distance under one of its names.
struct Frechet {
    name: &'static str,
    options: Comparison,
    network: Box<dyn Network>,
    /// Name and hash of the file of weights.
    weights: [String; 2],
    /// Moments of the training images, once they are known.
    reference: OnceCell<Moments>,
    /// Where they are kept for other runs.
    cache: PathBuf,
}

impl Frechet {
    fn build(
        name: &'static str,
        options: Comparison,
        architecture: Architecture,
        weights: &WeightsFile,
        scope: &Scope,
    ) -> anyhow::Result<Box<dyn Metric>> {
        Ok(Box::new(Self {
            name,
            options,
            network: architecture.network(weights, scope.device, &scope.data.shape)?,
            weights: [weights.name(), weights.sha256.clone()],
            reference: OnceCell::new(),
            cache: cache_folder()?.join("moments"),
        }))
    }

    fn images(&self) -> Images {
        Images {
            batch: self.options.batch.into(),
        }
    }

    /// The moments of the training images, from the cache if they are there.
    fn reference(&self, subject: &Subject, selection: Selection) -> anyhow::Result<&Moments> {
        if let Some(known) = self.reference.get() {
            return Ok(known);
        }
        // What is only tried out leaves nothing behind.
        let moments = if subject.quick {
            self.moments_of_data(subject, selection)?
        } else {
            self.cached(subject, selection)?
        };
        Ok(self.reference.get_or_init(|| moments))
    }

    fn cached(&self, subject: &Subject, selection: Selection) -> anyhow::Result<Moments> {
        let key = self.key(subject, selection)?;
        let path = self.cache.join(format!("{key}.safetensors"));
        match reference::read(&path, self.network.dim()) {
            Ok(Some(moments)) => return Ok(moments),
            Ok(None) => {}
            Err(error) => tracing::warn!("{} is not used: {error:#}", path.display()),
        }
        let moments = self.moments_of_data(subject, selection)?;
        if let Err(error) = reference::write(&path, &moments) {
            tracing::warn!(
                "{} was not written, next time the training images are looked at again: {error:#}",
                path.display()
            );
        }
        Ok(moments)
    }

    /// A hash of all that the moments depend on: the images themselves, what is done to them, and the weights.
    fn key(&self, subject: &Subject, selection: Selection) -> anyhow::Result<String> {
        let mut hash = Sha256::new();
        hash.update(format!(
            "moments 1\n{}\n{}\n{:?}\n{}\n",
            self.network.preprocessing(),
            self.weights[1],
            subject.dataset.shape(),
            selection.count()
        ));
        let what = format!("{}: hash of the training images", self.name);
        self.images().of_data(&what, subject, selection, |images| {
            hash.update(bytes(images)?);
            Ok(())
        })?;
        Ok(hex(&hash.finalize()))
    }

    fn moments_of_data(&self, subject: &Subject, selection: Selection) -> anyhow::Result<Moments> {
        let mut sums = Sums::new(self.network.dim());
        let what = format!("{}: training images", self.name);
        self.images().of_data(&what, subject, selection, |images| {
            sums.add(&self.network.features(images));
            Ok(())
        })?;
        Ok(sums.moments())
    }
}

impl Metric for Frechet {
    fn measure(&self, mut subject: Subject) -> anyhow::Result<Scalars> {
        let samples = subject.sample_count(self.options.samples.into());
        let selection = Selection::of(&subject, self.options.reference);
        ensure!(selection.count() >= 2, "needs at least 2 training images");
        let fewer = samples.min(selection.count());
        if fewer < self.network.dim() && !subject.quick {
            tracing::warn!(
                "{}: {fewer} images do not fill a covariance of {} features; the number is biased, and comparable only \
                 at the same counts",
                self.name,
                self.network.dim()
            );
        }
        let reference = self.reference(&subject, selection)?;

        let mut sums = Sums::new(self.network.dim());
        let what = format!("{}: samples", self.name);
        let finite = self.images().of_model(&what, &mut subject, samples, |images| {
            sums.add(&self.network.features(images));
            Ok(())
        })?;
        let distance = if finite {
            squared_distance(reference, &sums.moments())?
        } else {
            tracing::warn!("{}: samples of the model are not finite", self.name);
            f64::NAN
        };
        let mut scalars = Scalars::new();
        scalars.add_number(self.name, distance);
        Ok(scalars)
    }

    fn facts(&self, subject: &Subject) -> Facts {
        facts_of_comparison(
            subject,
            &self.weights,
            self.options.samples,
            self.options.reference,
            self.network.as_ref(),
        )
    }
}

inventory::submit! { Registration::of::<Fid>("fid") }
inventory::submit! { Registration::of::<FrechetInception>("frechet_inception") }
inventory::submit! { Registration::of::<FrechetVgg16>("frechet_vgg16") }
