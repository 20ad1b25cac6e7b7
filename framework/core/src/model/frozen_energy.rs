//! An energy at fixed parameters, on plain numbers in main memory: what chains on the CPU run with.

/// U and ∇U at the parameters that an energy had when it was frozen. Threads share it.
pub trait FrozenEnergy: Send + Sync {
    /// Values and gradients at points that are given row by row; `values` has one number for each of them.
    ///
    /// A point's numbers do not depend on what others it is evaluated with.
    fn evaluate(&self, points: &[f32], values: &mut [f32], gradients: &mut [f32]);

    /// What it computes with, for the log.
    fn engine(&self) -> String;
}
