//! Runs the training loop: steps, records, interruptions, and what is written at the end.

use std::path::Path;

use serde_json::{Map, Value};
use tch::Kind;

use super::checkpoint::Checkpoints;
use super::findings::Findings;
use super::progress::Progress;
use super::provenance::Provenance;
use super::{Experiment, Interrupt, Log, RunFolder};
use crate::panics::caught;
use crate::record::{self, DumpFacts, MetricsFile, Moment, TensorBoard};
use crate::{Scalars, Split};

/// Points that a picture shows.
const SHOWN_POINTS: usize = 4000;

/// How a run ended, if it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Finished,
    Interrupted,
}

/// Trains, or goes on with it, and writes everything below the run's folder.
pub fn train(
    mut experiment: Experiment,
    folder: &RunFolder,
    sources: Option<&Path>,
    log: &Log,
    interrupt: &Interrupt,
) -> anyhow::Result<Outcome> {
    let recipe = experiment.recipe.clone();
    let mut checkpoints = Checkpoints::of(folder.path(), recipe.record.checkpoint.keep);
    let done = checkpoints.restore(&mut experiment)?;
    folder.write("recipe.yaml", &recipe.to_yaml())?;
    let mut provenance = Provenance::at_start(sources, experiment.device, recipe.hash(), recipe.run.seed);
    folder.write("provenance.json", &provenance.to_json()?)?;

    let outcome = caught(|| {
        let run = Run::start(&mut experiment, folder.path(), checkpoints, done, log)?;
        run.until_done(interrupt)
    });

    provenance.ended(match &outcome {
        Ok(Outcome::Finished) => "finished".to_owned(),
        Ok(Outcome::Interrupted) => "interrupted".to_owned(),
        Err(error) => format!("{error:#}"),
    });
    let noted = folder.write("provenance.json", &provenance.to_json()?);
    // Why the run failed matters more than that this could not be noted.
    outcome.and_then(|outcome| noted.map(|()| outcome))
}

struct Run<'a> {
    experiment: &'a mut Experiment,
    folder: &'a Path,
    checkpoints: Checkpoints,
    /// Steps completed so far.
    done: u64,
    metrics: MetricsFile,
    tensorboard: TensorBoard,
    progress: Progress,
}

impl<'a> Run<'a> {
    /// `done` is how many steps the checkpoint had that the experiment was restored from, if there was one.
    fn start(
        experiment: &'a mut Experiment,
        folder: &'a Path,
        checkpoints: Checkpoints,
        done: Option<u64>,
        log: &Log,
    ) -> anyhow::Result<Self> {
        let total = experiment.total_steps();
        let epochs = total.div_ceil(experiment.steps_per_epoch());
        tracing::info!(
            "{} data points, {} latent dimensions, {} energy and {} generator parameters, {total} steps",
            experiment.dataset.len(Split::Train),
            experiment.model.generator.latent_dim(),
            experiment.model.energy.parameters().count(),
            experiment.model.generator.parameters().count(),
        );
        for (name, value) in experiment.algorithm.constants() {
            tracing::info!("{name}: {}", value as f32);
        }
        let mut tensorboard = TensorBoard::create(folder)?;
        if let Some(done) = done {
            tracing::info!("resumed after step {done}");
            tensorboard.resumed(done);
        }
        let done = done.unwrap_or(0);
        Ok(Self {
            metrics: MetricsFile::open(folder, done)?,
            tensorboard,
            progress: Progress::start(&log.bars, done, total, epochs),
            experiment,
            folder,
            checkpoints,
            done,
        })
    }

    fn until_done(mut self, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
        let total = self.experiment.total_steps();
        while self.done < total && !interrupt.asked() {
            let scalars = self.experiment.step(self.done)?;
            self.done += 1;
            self.after_step(self.done, self.done == total, &scalars)?;
        }
        self.progress.finish();
        self.checkpoints.save(self.experiment, self.done)?;
        if self.done < total {
            tracing::warn!(
                "interrupted after {} of {total} steps; --resume goes on",
                self.done
            );
            return Ok(Outcome::Interrupted);
        }
        self.at_end(self.done)?;
        Ok(Outcome::Finished)
    }

    fn moment(&self, done: u64) -> Moment {
        Moment {
            step: done,
            epoch: done.saturating_sub(1) / self.experiment.steps_per_epoch(),
        }
    }

    fn after_step(&mut self, done: u64, last: bool, scalars: &Scalars) -> anyhow::Result<()> {
        let moment = self.moment(done);
        let record = self.experiment.recipe.record.clone();
        self.progress.advance(moment);

        let to_file = last || record.metrics.due(done);
        let to_tensorboard = last || record.tensorboard.due(done);
        let to_screen = self.progress.due();
        let guard = self.experiment.recipe.guard.clone();
        let guarded = guard.every > 0 && done.is_multiple_of(guard.every);
        let checkpoint = !last && record.checkpoint.due(done);
        if to_file || to_tensorboard || to_screen || guarded || checkpoint {
            let numbers = scalars.read();
            if to_file {
                self.metrics.write(moment, &numbers)?;
            }
            if to_tensorboard {
                self.tensorboard.write(moment, &numbers)?;
                let rate = ("speed/steps_per_second".to_owned(), self.progress.rate(done));
                self.tensorboard.write(moment, &[rate])?;
            }
            if to_screen {
                self.progress.show(moment, &numbers);
            }
            guard.check(done, &numbers)?;
        }
        if !last {
            let evaluate = self.experiment.recipe.evaluate.every;
            if evaluate > 0 && done.is_multiple_of(evaluate) {
                self.evaluate(moment)?;
            }
            if record.particles.due(done) {
                self.dump_particles(moment)?;
            }
            if record.figures.due(done) {
                self.draw(moment)?;
            }
        }
        // Last, so that whoever resumes from it finds all else written.
        if checkpoint {
            self.checkpoints.save(self.experiment, done)?;
        }
        Ok(())
    }

    fn at_end(&mut self, done: u64) -> anyhow::Result<()> {
        let moment = self.moment(done);
        self.dump_particles(moment)?;
        self.draw(moment)?;
        let found = self.evaluate(moment)?.to_json();
        if !found.is_empty() {
            let mut all = Map::new();
            all.insert("step".into(), done.into());
            all.extend(found);
            let path = self.folder.join("evaluation.json");
            record::write_bytes(&path, format!("{:#}\n", Value::Object(all)))?;
        }
        Ok(())
    }

    fn evaluate(&mut self, moment: Moment) -> anyhow::Result<Findings> {
        let found = self.experiment.evaluate()?;
        let named: Vec<_> = found
            .numbers()
            .map(|(name, number)| (format!("evaluate/{name}"), number))
            .collect();
        if !named.is_empty() {
            self.metrics.write(moment, &named)?;
            self.tensorboard.write(moment, &named)?;
            for (name, number) in found.numbers() {
                tracing::info!("{name}: {number:.5}");
            }
        }
        Ok(found)
    }

    fn dump_particles(&self, moment: Moment) -> anyhow::Result<()> {
        let Some(clouds) = self.experiment.algorithm.clouds() else {
            return Ok(());
        };
        let facts = DumpFacts {
            moment,
            seed: self.experiment.recipe.run.seed,
            recipe_hash: self.experiment.recipe.hash(),
        };
        let mut random = self.experiment.streams_for("particle_dump");
        record::dump_particles(self.folder, clouds, &facts, &mut random)?;
        Ok(())
    }

    /// Models of two-dimensional data with two-dimensional latents can be seen whole.
    fn draw(&self, moment: Moment) -> anyhow::Result<()> {
        let experiment = &*self.experiment;
        if experiment.dataset.shape() != [2] || experiment.model.generator.latent_dim() != 2 {
            return Ok(());
        }
        let _averages = experiment.averages();
        let (latents, samples) = experiment.sample(SHOWN_POINTS as i64)?;
        if i64::try_from(samples.isfinite().all())? == 0 {
            tracing::warn!("no picture: samples are not finite");
            return Ok(());
        }
        let data = experiment.dataset.first(Split::Train, SHOWN_POINTS)?;
        let path = self.folder.join(format!("figures/step_{:08}.png", moment.step));
        let latents = latents.to_kind(Kind::Float);
        record::draw_model(&path, &data, &samples, &latents, experiment.model.energy.as_ref())
    }
}
