//! Sends numbers to TensorBoard.

use std::path::Path;

use tensorboard_rs::summary_writer::SummaryWriter;

use super::Moment;

/// The event file of one run.
pub struct TensorBoard {
    writer: SummaryWriter,
}

impl TensorBoard {
    /// Starts an event file in `folder/tensorboard`.
    pub fn create(folder: &Path) -> anyhow::Result<Self> {
        let folder = folder.join("tensorboard");
        std::fs::create_dir_all(&folder)?;
        Ok(Self {
            writer: SummaryWriter::new(folder),
        })
    }

    /// Adds a point to the curve of each number.
    pub fn write(&mut self, moment: Moment, numbers: &[(String, f64)]) {
        for (name, number) in numbers {
            self.writer.add_scalar(name, *number as f32, moment.step as usize);
        }
    }
}

impl Drop for TensorBoard {
    fn drop(&mut self) {
        self.writer.flush();
    }
}
