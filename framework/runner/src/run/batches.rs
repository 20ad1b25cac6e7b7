//! Hands out mini-batches, and assembles the next one while the current one is computed with.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use anyhow::Context;
use ebipla_core::system::panics::caught;
use ebipla_core::{Dataset, Indices, Random, Split};
use tch::{Kind, Tensor};

/// Data points of one step.
pub struct Batch {
    /// Which training points they are.
    pub indices: Indices,
    /// The points, on the CPU.
    pub data: Tensor,
}

/// All mini-batches of a run, in an order that depends on its seed alone.
pub struct Batches {
    count: usize,
    size: usize,
    /// The data order of the epoch that it belongs to.
    order: Option<(u64, Tensor)>,
    /// Number and indices of the batch that is being assembled.
    ahead: Option<(u64, Tensor)>,
    reader: Reader,
}

impl Batches {
    /// Of `size` training points each; the last one of an epoch may have fewer.
    pub fn new(dataset: Arc<dyn Dataset>, size: usize) -> anyhow::Result<Self> {
        Ok(Self {
            count: dataset.len(Split::Train),
            size,
            order: None,
            ahead: None,
            reader: Reader::start(dataset)?,
        })
    }

    /// How many there are in one pass over the data.
    pub fn per_epoch(&self) -> u64 {
        self.count.div_ceil(self.size) as u64
    }

    /// The batch of step `k`, counted from 0. It is at hand if that of step `k - 1` was the last one asked for.
    pub fn get(&mut self, k: u64, random: &mut Random) -> anyhow::Result<Batch> {
        let indices = match self.ahead.take() {
            Some((number, indices)) if number == k => indices,
            other => {
                if other.is_some() {
                    // Nobody wants it any more, and whether it could be read.
                    let _ = self.reader.answer();
                }
                let indices = self.indices(k, random);
                self.reader.ask(&indices)?;
                indices
            }
        };
        let data = self.reader.answer()?;
        let next = self.indices(k + 1, random);
        self.reader.ask(&next)?;
        self.ahead = Some((k + 1, next));
        Ok(Batch {
            indices: indices.into(),
            data,
        })
    }

    fn indices(&mut self, k: u64, random: &mut Random) -> Tensor {
        let (epoch, batch) = (k / self.per_epoch(), k % self.per_epoch());
        let count = self.count as i64;
        let order = match self.order.take() {
            Some((of, order)) if of == epoch => order,
            _ => random.stream("data_order", epoch).permutation(count),
        };
        let start = batch as i64 * self.size as i64;
        let indices = order.narrow(0, start, (self.size as i64).min(count - start));
        self.order = Some((epoch, order));
        indices
    }
}

/// A thread that reads training points; it answers each question, in order.
struct Reader {
    /// `None` once it shall end.
    questions: Option<Sender<Tensor>>,
    answers: Receiver<anyhow::Result<Tensor>>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    fn start(dataset: Arc<dyn Dataset>) -> anyhow::Result<Self> {
        let (questions, asked) = channel::<Tensor>();
        let (answer, answers) = channel();
        let read = move || {
            // Gradients are switched off per thread. The number of libtorch's threads is taken over.
            let _guard = tch::no_grad_guard();
            for indices in asked {
                let data = caught(|| {
                    let data = dataset.get(Split::Train, &indices)?;
                    ensure_finite(&indices, &data)?;
                    Ok(data)
                });
                if answer.send(data).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new()
            .name("batches".into())
            .spawn(read)
            .context("starting the thread that reads batches")?;
        Ok(Self {
            questions: Some(questions),
            answers,
            thread: Some(thread),
        })
    }

    fn ask(&self, indices: &Tensor) -> anyhow::Result<()> {
        let asked = self
            .questions
            .as_ref()
            .and_then(|questions| questions.send(indices.shallow_clone()).ok());
        asked.context("the thread that reads batches has ended")
    }

    fn answer(&self) -> anyhow::Result<Tensor> {
        let answer = self.answers.recv();
        answer.context("the thread that reads batches has ended")?
    }
}

/// Numbers that are not finite would make the run diverge, and look like a wrong step size.
fn ensure_finite(indices: &Tensor, data: &Tensor) -> anyhow::Result<()> {
    if data.kind() != Kind::Float {
        return Ok(());
    }
    // In plain Rust: libtorch's threads belong to the step that is computed meanwhile.
    let mut numbers = vec![0f32; data.numel()];
    data.contiguous().copy_data(&mut numbers, data.numel());
    let Some(i) = numbers.iter().position(|number| !number.is_finite()) else {
        return Ok(());
    };
    let row = i / (numbers.len() / indices.numel());
    anyhow::bail!(
        "training point {} of the data set has a number that is not finite ({})",
        indices.int64_value(&[row as i64]),
        numbers[i]
    )
}

impl Drop for Reader {
    /// Waits, since libtorch must not be in use when the program ends.
    fn drop(&mut self) {
        self.questions = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Mutex;

    use anyhow::bail;

    use super::*;

    /// Point i is i; it counts how often it is asked, and does not like 3, 4 and 5.
    #[derive(Default)]
    struct Counting {
        bad: bool,
        read: Mutex<usize>,
    }

    impl Dataset for Counting {
        fn shape(&self) -> &[i64] {
            &[]
        }

        fn len(&self, _: Split) -> usize {
            10
        }

        fn get(&self, _: Split, indices: &Tensor) -> anyhow::Result<Tensor> {
            *self.read.lock().unwrap() += 1;
            let has = |point: i64| i64::try_from(indices.eq(point).any()).unwrap() == 1;
            if self.bad && has(3) {
                bail!("point 3 is damaged");
            }
            assert!(!self.bad || !has(4), "point 4 is worse");
            let points = indices.to_kind(Kind::Float);
            Ok(match self.bad {
                true => points.masked_fill(&indices.eq(5), f64::NAN),
                false => points,
            })
        }
    }

    fn numbers(tensor: &Tensor) -> Vec<f64> {
        Vec::try_from(tensor.to_kind(Kind::Double)).unwrap()
    }

    #[test]
    fn an_epoch_has_every_point_once_and_epochs_differ() {
        let mut random = Random::new(3);
        let mut batches = Batches::new(Arc::new(Counting::default()), 4).unwrap();
        assert_eq!(batches.per_epoch(), 3);
        let mut epochs = Vec::new();
        for epoch in 0..2 {
            let mut seen = Vec::new();
            for (k, size) in [4, 4, 2].into_iter().enumerate() {
                let batch = batches.get(epoch * 3 + k as u64, &mut random).unwrap();
                assert_eq!(numbers(batch.indices.on_cpu()), numbers(&batch.data));
                assert_eq!(batch.data.size(), [size]);
                seen.extend(numbers(&batch.data));
            }
            epochs.push(seen.clone());
            seen.sort_by(f64::total_cmp);
            assert_eq!(seen, (0..10).map(f64::from).collect::<Vec<_>>());
        }
        assert_ne!(epochs[0], epochs[1]);
    }

    /// Whoever resumes at step 7 sees what an uninterrupted run saw; nothing is read twice on the way.
    #[test]
    fn a_batch_depends_on_its_number_alone_and_is_read_once() {
        let dataset = Arc::new(Counting::default());
        let mut batches = Batches::new(dataset.clone(), 4).unwrap();
        let mut random = Random::new(3);
        let through: Vec<_> = (0..9)
            .map(|k| numbers(&batches.get(k, &mut random).unwrap().data))
            .collect();
        drop(batches);
        assert_eq!(*dataset.read.lock().unwrap(), 10, "nine, and one ahead");
        let mut batches = Batches::new(dataset, 4).unwrap();
        for k in [7, 8, 2, 0, 1, 1] {
            let found = numbers(&batches.get(k, &mut random).unwrap().data);
            assert_eq!(found, through[k as usize], "batch {k}");
        }
    }

    #[test]
    fn errors_and_panics_of_the_data_set_arrive_in_their_step() {
        let bad = Counting {
            bad: true,
            ..Counting::default()
        };
        let mut batches = Batches::new(Arc::new(bad), 1).unwrap();
        let (mut failed, mut random) = (Vec::new(), Random::new(5));
        for k in 0..10 {
            let (order, found) = (batches.indices(k, &mut random), batches.get(k, &mut random));
            let point = numbers(&order)[0];
            match found {
                Ok(batch) => assert_eq!(numbers(&batch.data), [point]),
                Err(error) => failed.push((point, error.to_string())),
            }
        }
        failed.sort_by(|a, b| a.0.total_cmp(&b.0));
        let expected = [
            (3.0, "point 3 is damaged"),
            (4.0, "internal error: point 4 is worse"),
            (
                5.0,
                "training point 5 of the data set has a number that is not finite (NaN)",
            ),
        ];
        assert_eq!(failed, expected.map(|(point, error)| (point, error.to_owned())));
    }
}
