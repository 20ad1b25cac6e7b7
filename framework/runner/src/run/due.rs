//! Names the records that take long enough to be interrupted.

use serde::{Deserialize, Serialize};

/// A record that is due after some steps only. The checkpoint of an interrupted run says which are still to be written, and a
/// resumed run begins with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Due {
    Evaluation,
    Particles,
    Figures,
}
