//! Fréchet distances between the features of a model's samples and those of training images, including FID.

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

/// SHA-256 of `pt_inception-2015-12-05-6726825d.pth`: only with this file is a Fréchet distance a FID.
const GENUINE: &str = "6726825d0af5f729cebd5821db510b11b1cfad8faad88a03f1befd49fb9129b2";

/// Options that the three metrics share.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Comparison {
    /// File with the network's weights; null uses the path in EBIPLA_INCEPTION or EBIPLA_VGG16.
    weights: Option<String>,
    /// Samples drawn from the model, without decoder noise; papers use 50,000. [images]
    #[schemars(range(min = 2))]
    samples: u32,
    /// Training images to compare with, evenly spread over the set; null uses all. [images]
    #[schemars(range(min = 2))]
    reference: Option<u32>,
    /// Images that the network processes at a time. [images]
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

/// Fréchet Inception distance (FID) between samples of the model and training images, computed as in pytorch-fid.
///
/// Requires the genuine weights, pt_inception-2015-12-05-6726825d.pth. Images are rounded to 8 bits, as in files; grey
/// ones get three equal channels.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Fid(Comparison);

/// The FID pipeline with any weights for its network: not a FID, and not comparable with one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct FrechetInception(Comparison);

/// Fréchet distance between VGG-16 features of samples and training images: cheap, for comparing runs with each other.
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
             other weights is not a FID; the metric `frechet_inception` computes it under its own name",
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

/// A Fréchet distance, known under one of its names.
struct Frechet {
    name: &'static str,
    options: Comparison,
    network: Box<dyn Network>,
    /// Name and hash of the weights file.
    weights: [String; 2],
    /// Moments of the training images, once computed.
    reference: OnceCell<Moments>,
    /// Folder where they are cached for other runs.
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

    /// The moments of the training images, from the cache if possible.
    fn reference(&self, subject: &Subject, selection: Selection) -> anyhow::Result<&Moments> {
        if let Some(known) = self.reference.get() {
            return Ok(known);
        }
        // A trial run leaves no files behind.
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
            Err(error) => tracing::warn!("ignoring {}: {error:#}", path.display()),
        }
        let moments = self.moments_of_data(subject, selection)?;
        if let Err(error) = reference::write(&path, &moments) {
            tracing::warn!(
                "cannot write {}, so the next run computes the moments of the training images again: {error:#}",
                path.display()
            );
        }
        Ok(moments)
    }

    /// A hash of everything that the moments depend on: the images, their preprocessing, and the weights.
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
                "{}: {fewer} images are too few to estimate a covariance of {} features; the distance is biased, and comparable only \
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
