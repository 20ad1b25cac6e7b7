//! Precision and recall of a model's samples: whether they resemble the data, and whether they cover it.

use anyhow::ensure;
use ebipla_core::prelude::*;
use ebipla_core::{interruption_point, require_memory};
use tch::{Device, Kind};

use super::image_features::{Architecture, Images, Network, Selection, facts_of_comparison};

/// Precision and recall of samples against training images, by nearest neighbours (Kynkäänniemi et al. 2019).
///
/// Precision is the share of samples that are closer to some training image than its k-th neighbour, recall the same
/// with the roles swapped. Features are means of VGG-16's relu5_3, where the paper uses a later layer: compare runs
/// with each other, not with published figures.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PrecisionRecall {
    /// File with the weights of VGG-16; null uses the path in EBIPLA_VGG16.
    weights: Option<String>,
    /// Samples drawn from the model, without decoder noise. [images]
    #[schemars(range(min = 2))]
    samples: u32,
    /// Training images to compare with, evenly spread over the set; null uses all. [images]
    #[schemars(range(min = 2))]
    reference: Option<u32>,
    /// k: an image's neighbourhood reaches to its k-th nearest neighbour. [neighbours]
    #[schemars(range(min = 1))]
    neighbours: u32,
    /// Images that the network processes at a time. [images]
    #[schemars(range(min = 1, max = 512))]
    batch: u32,
}

impl Default for PrecisionRecall {
    fn default() -> Self {
        Self {
            weights: None,
            samples: 10_000,
            reference: Some(10_000),
            neighbours: 3,
            batch: 50,
        }
    }
}

impl Plugin for PrecisionRecall {
    type Builds = dyn Metric;

    fn better(_: &str) -> Option<Better> {
        Some(Better::Higher)
    }

    fn build(self, scope: &mut Scope) -> anyhow::Result<Box<dyn Metric>> {
        let images = scope
            .data
            .count
            .min(self.reference.map_or(usize::MAX, |n| n as usize))
            + self.samples as usize;
        // One copy of the features from the network, one in double precision, and one for concatenating them.
        let bytes = images as u128 * FEATURES * (2 * size_of::<f32>() + size_of::<f64>()) as u128;
        require_memory(&format!("the features of {images} images"), bytes)?;
        let weights = Architecture::Vgg16.weights(self.weights.as_deref())?;
        Ok(Box::new(Measure {
            network: Architecture::Vgg16.network(&weights, scope.device, &scope.data.shape)?,
            weights: [weights.name(), weights.sha256],
            options: self,
        }))
    }
}

/// The features of an image.
const FEATURES: u128 = 512;

struct Measure {
    options: PrecisionRecall,
    network: Box<dyn Network>,
    /// Name and hash of the weights file.
    weights: [String; 2],
}

impl Metric for Measure {
    fn measure(&self, mut subject: Subject) -> anyhow::Result<Scalars> {
        let images = Images {
            batch: self.options.batch.into(),
        };
        let features = |images: &Tensor| self.network.features(images).to_device(Device::Cpu);
        let selection = Selection::of(&subject, self.options.reference);
        let samples = subject.sample_count(self.options.samples.into());
        let k = i64::from(self.options.neighbours);
        let fewest = samples.min(selection.count());
        ensure!(
            k < fewest,
            "neighbours: found {k}, expected less than the number of images, {fewest}"
        );
        let (mut of_data, mut of_model) = (Vec::new(), Vec::new());
        images.of_data(
            "precision_recall: training images",
            &subject,
            selection,
            |batch| {
                of_data.push(features(batch));
                Ok(())
            },
        )?;
        let what = "precision_recall: samples";
        let finite = images.of_model(what, &mut subject, samples, |batch| {
            of_model.push(features(batch));
            Ok(())
        })?;
        let mut scalars = Scalars::new();
        let [precision, recall] = if finite {
            let data = Neighbourhoods::new(Tensor::cat(&of_data, 0), k);
            let model = Neighbourhoods::new(Tensor::cat(&of_model, 0), k);
            [
                data.share_covered(&model.points),
                model.share_covered(&data.points),
            ]
        } else {
            tracing::warn!("precision_recall: samples of the model are not finite");
            [f64::NAN; 2]
        };
        scalars.add_number("precision_recall/precision", precision);
        scalars.add_number("precision_recall/recall", recall);
        Ok(scalars)
    }

    fn facts(&self, subject: &Subject) -> Facts {
        let mut facts = facts_of_comparison(
            subject,
            &self.weights,
            self.options.samples,
            self.options.reference,
            self.network.as_ref(),
        );
        facts.insert("neighbours".into(), self.options.neighbours.into());
        facts
    }
}

/// Points whose distances to all others are in memory at a time.
const BLOCK: i64 = 512;

/// A ball around each point that reaches to its k-th neighbour.
struct Neighbourhoods {
    points: Tensor,
    radii: Tensor,
}

impl Neighbourhoods {
    fn new(points: Tensor, k: i64) -> Self {
        let _guard = tch::no_grad_guard();
        let points = points.to_kind(Kind::Double);
        // The nearest point is the point itself.
        let of_block = |block: &Tensor| distances(block, &points).kthvalue(k + 1, 1, false).0;
        let radii: Vec<_> = points.split(BLOCK, 0).iter().map(of_block).collect();
        Self {
            radii: Tensor::cat(&radii, 0),
            points,
        }
    }

    /// The share of `others` that lie in some ball.
    fn share_covered(&self, others: &Tensor) -> f64 {
        let _guard = tch::no_grad_guard();
        let covered = |block: &Tensor| {
            let inside = distances(block, &self.points).less_equal_tensor(&self.radii);
            inside.any_dim(1, false).sum(Kind::Int64).int64_value(&[])
        };
        let count: i64 = others.split(BLOCK, 0).iter().map(covered).sum();
        count as f64 / others.size()[0] as f64
    }
}

fn distances(from: &Tensor, to: &Tensor) -> Tensor {
    interruption_point();
    Tensor::cdist(from, to, 2.0, None)
}

inventory::submit! { Registration::of::<PrecisionRecall>("precision_recall") }

#[cfg(test)]
mod tests {
    use super::*;

    fn on_a_line(points: &[f32]) -> Neighbourhoods {
        Neighbourhoods::new(Tensor::from_slice(points).unsqueeze(1), 2)
    }

    /// The second neighbours of 0, 1, 3, 10 are at the distances 3, 2, 3, 9.
    #[test]
    fn radii_reach_the_kth_neighbour() {
        let expected = Tensor::from_slice(&[3.0, 2.0, 3.0, 9.0]);
        assert!(
            on_a_line(&[0.0, 1.0, 3.0, 10.0])
                .radii
                .allclose(&expected, 1e-9, 1e-9, false)
        );
    }

    /// The balls cover [−3, 19]. Conversely, those of 18, 19, 20, 40 have radii 2, 1, 2, 21 and cover [16, 22] and [19,
    /// 61], which contain none of the data.
    #[test]
    fn precision_and_recall_differ() {
        let data = on_a_line(&[0.0, 1.0, 3.0, 10.0]);
        let model = on_a_line(&[18.0, 18.5, 20.0, 40.0]);
        assert_eq!(data.share_covered(&model.points), 0.5);
        assert_eq!(model.share_covered(&data.points), 0.0);
        assert_eq!(data.share_covered(&data.points), 1.0);
    }
}
