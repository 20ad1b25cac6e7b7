//! How the weights of transposed convolutions are initialised.

use ebipla_core::prelude::*;
use tch::Device;

/// How weights are initialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Initialisation {
    /// Weights and biases uniform on ±1/√(out·k²), PyTorch's default.
    Pytorch,
    /// Weights normal with variance 2/(k²(in + out)), biases as in PyTorch's default: as in Pang et al. 2020.
    Xavier,
}

impl Initialisation {
    /// Adds weight and bias of a transposed convolution from `inputs` to `outputs` channels.
    ///
    /// PyTorch stores its weights as `[in, out, k, k]` and takes the second dimension as the inputs.
    pub fn draw(
        self,
        [inputs, outputs]: [i64; 2],
        kernel: i64,
        draws: &mut Draws,
        device: Device,
    ) -> [Tensor; 2] {
        let shape = [inputs, outputs, kernel, kernel];
        let area = (kernel * kernel) as f64;
        let bound = 1.0 / (outputs as f64 * area).sqrt();
        let weight = match self {
            Initialisation::Pytorch => draws.uniform(-bound, bound, &shape, device),
            Initialisation::Xavier => {
                draws.normal(&shape, device) * (2.0 / (area * (inputs + outputs) as f64)).sqrt()
            }
        };
        [weight, draws.uniform(-bound, bound, &[outputs], device)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebipla_core::Random;
    use tch::Kind;

    const CHANNELS: [i64; 2] = [48, 32];
    const KERNEL: i64 = 4;

    fn drawn(initialisation: Initialisation) -> [Tensor; 2] {
        let mut random = Random::new(4);
        let mut draws = random.stream("weights", 0);
        initialisation.draw(CHANNELS, KERNEL, &mut draws, Device::Cpu)
    }

    fn std(tensor: &Tensor) -> f64 {
        tensor.to_kind(Kind::Double).std(true).double_value(&[])
    }

    fn largest(tensor: &Tensor) -> f64 {
        tensor.abs().max().double_value(&[])
    }

    /// ±1/√(32·16) = ±0.0442, with a standard deviation of 1/√3 of that. For n = 24,576 uniform numbers the standard
    /// deviation has relative standard error √(0.2/n) = 0.29 %, and the largest is within 1/n of the bound on average.
    #[test]
    fn initial_weights_follow_pytorch() {
        let [weight, _] = drawn(Initialisation::Pytorch);
        assert_eq!(weight.size(), [48, 32, 4, 4]);
        let bound = 1.0 / 512f64.sqrt();
        assert!((std(&weight) * 3f64.sqrt() / bound - 1.0).abs() < 0.0145);
        assert!(largest(&weight) <= bound && largest(&weight) > 0.999 * bound);
    }

    /// √(2/(16·80)) = 0.0395; for n normal numbers the standard deviation has relative standard error √(0.5/n) = 0.45
    /// %. Uniform numbers of that standard deviation end at √3 = 1.73 times it; normal ones do not.
    #[test]
    fn initial_weights_follow_pang_et_al() {
        let [weight, _] = drawn(Initialisation::Xavier);
        let expected = (2.0 / (16.0 * 80.0f64)).sqrt();
        assert!((std(&weight) / expected - 1.0).abs() < 0.0225);
        assert!(largest(&weight) > 3.0 * expected);
    }

    /// 32 numbers uniform on ±b: none exceeds b, and all are below b/2 with probability 2⁻³².
    #[test]
    fn initial_biases_follow_pytorch() {
        for initialisation in [Initialisation::Pytorch, Initialisation::Xavier] {
            let [_, bias] = drawn(initialisation);
            assert_eq!(bias.size(), [32]);
            let bound = 1.0 / 512f64.sqrt();
            assert!(
                largest(&bias) <= bound && largest(&bias) > 0.5 * bound,
                "{initialisation:?}"
            );
        }
    }
}
