//! Sends numbers, distributions, pictures and the recipe to TensorBoard.
//!
//! The library writes the records. What they hold is built in [`summaries`], and the file is opened here, since the
//! library's own writer panics on a full disk and does not say when it has written.

mod summaries;

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use protobuf::Message;
use serde_json::Value;
use tch::Tensor;
use tensorboard_proto::event::{Event, SessionLog, SessionLog_SessionStatus};
use tensorboard_proto::summary::{Summary, Summary_Value};
use tensorboard_rs::record_writer::RecordWriter;

use super::{Moment, Picture};

/// What names of event files begin with: TensorBoard looks for it.
const PREFIX: &str = "events.out.tfevents.";

/// The event file of one run, or of one part of a resumed run.
pub struct TensorBoard {
    writer: RecordWriter<BufWriter<File>>,
    path: PathBuf,
}

impl TensorBoard {
    /// Starts an event file in `folder/tensorboard`.
    pub fn create(folder: &Path) -> anyhow::Result<Self> {
        let folder = folder.join("tensorboard");
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let (file, path) = new_file(&folder)?;
        let mut tensorboard = Self {
            writer: RecordWriter::new(BufWriter::new(file)),
            path,
        };
        let mut version = Event::new();
        version.set_file_version("brain.Event:2".into());
        tensorboard.write(0, version)?;
        Ok(tensorboard)
    }

    /// Tells TensorBoard that the run was taken up again after `done` steps: points of later steps are void.
    pub fn resumed(&mut self, done: u64) -> anyhow::Result<()> {
        let mut session = SessionLog::new();
        session.set_status(SessionLog_SessionStatus::START);
        let mut event = Event::new();
        event.set_session_log(session);
        // TensorBoard drops what is at this step or later, and the point at `done` is to stay.
        self.write(done + 1, event)
    }

    /// Adds a point to the curve of each number.
    pub fn scalars(&mut self, moment: Moment, numbers: &[(String, f64)]) -> anyhow::Result<()> {
        let values = numbers
            .iter()
            .map(|(name, number)| summaries::scalar(name, *number as f32));
        self.add(moment.step, values.collect())
    }

    /// Adds how `values` are distributed.
    pub fn histogram(&mut self, moment: Moment, name: &str, values: &Tensor) -> anyhow::Result<()> {
        // TensorBoard mistakes a histogram for a scalar where the two have the same name.
        match summaries::histogram(&format!("distribution/{name}"), values) {
            Some(histogram) => self.add(moment.step, vec![histogram]),
            // There is nothing finite to show; the scalars say so.
            None => Ok(()),
        }
    }

    /// Adds a picture.
    pub fn picture(&mut self, moment: Moment, name: &str, picture: &Picture) -> anyhow::Result<()> {
        self.add(moment.step, vec![summaries::picture(name, picture)?])
    }

    /// Adds a text in Markdown.
    pub fn text(&mut self, moment: Moment, name: &str, markdown: &str) -> anyhow::Result<()> {
        self.add(moment.step, vec![summaries::text(name, markdown)])
    }

    /// Says with which values the run was started, so that runs compare in the HParams tab.
    pub fn hyper_parameters<'a>(
        &mut self,
        values: impl Iterator<Item = (&'a str, &'a Value)>,
    ) -> anyhow::Result<()> {
        let started = summaries::session_start(values, seconds())?;
        self.add(0, vec![started])
    }

    /// Says how the run ended.
    pub fn ended(&mut self, moment: Moment, finished: bool) -> anyhow::Result<()> {
        let ended = summaries::session_end(finished, seconds())?;
        self.add(moment.step, vec![ended])
    }

    fn add(&mut self, step: u64, values: Vec<Summary_Value>) -> anyhow::Result<()> {
        let mut summary = Summary::new();
        summary.set_value(values.into());
        let mut event = Event::new();
        event.set_summary(summary);
        self.write(step, event)
    }

    fn write(&mut self, step: u64, mut event: Event) -> anyhow::Result<()> {
        event.set_step(step as i64);
        event.set_wall_time(seconds());
        let bytes = event.write_to_bytes()?;
        // Flushed at once, so that a killed process loses nothing that came before a checkpoint.
        self.writer
            .write(&bytes)
            .and_then(|()| self.writer.flush())
            .with_context(|| format!("writing {}", self.path.display()))
    }
}

/// A file that TensorBoard reads after those that are there: it reads them in the order of their names.
fn new_file(folder: &Path) -> anyhow::Result<(File, PathBuf)> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let number = |name: &str| name.strip_prefix(PREFIX)?.split('.').next()?.parse::<u64>().ok();
    let taken = entries
        .filter_map(|entry| number(&entry.ok()?.file_name().to_string_lossy()))
        .max();
    let mut number = taken.map_or(0, |taken| taken + 1).max(seconds() as u64);
    loop {
        let path = folder.join(format!("{PREFIX}{number:010}.runner"));
        match File::create_new(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            file => {
                let file = file.with_context(|| format!("creating {}", path.display()))?;
                return Ok((file, path));
            }
        }
    }
}

fn seconds() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}
