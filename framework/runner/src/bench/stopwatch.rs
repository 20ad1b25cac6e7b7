//! Times several ways to do the same work in turn, so that whatever else the machine does falls on all of them alike.

use std::time::Instant;

/// One way to do the work.
pub struct Contender<'a> {
    pub name: String,
    work: Box<dyn FnMut() -> anyhow::Result<()> + 'a>,
}

impl<'a> Contender<'a> {
    /// `work` must be done when it returns: on a GPU it has to read a number of its result.
    pub fn new(name: impl Into<String>, work: impl FnMut() -> anyhow::Result<()> + 'a) -> Self {
        Self {
            name: name.into(),
            work: Box::new(work),
        }
    }
}

/// Median seconds of each, over so many rounds in each of which every one is run once; the first round is not counted.
pub fn race(contenders: &mut [Contender], rounds: usize) -> anyhow::Result<Vec<f64>> {
    let mut seconds = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds {
        for (contender, seconds) in contenders.iter_mut().zip(&mut seconds) {
            let start = Instant::now();
            (contender.work)()?;
            if round > 0 {
                seconds.push(start.elapsed().as_secs_f64());
            }
        }
    }
    Ok(seconds.into_iter().map(median).collect())
}

/// The middle of some numbers, or the mean of the two in the middle.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => numbers[middle],
        _ => (numbers[middle - 1] + numbers[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::cell::RefCell;

    use super::*;

    #[test]
    fn contenders_take_turns() {
        let order = RefCell::new(String::new());
        let contender = |name: char| {
            let order = &order;
            Contender::new(name, move || {
                order.borrow_mut().push(name);
                Ok(())
            })
        };
        let seconds = race(&mut [contender('a'), contender('b')], 2).unwrap();
        assert_eq!(*order.borrow(), "ababab");
        assert!(seconds.len() == 2 && seconds.iter().all(|seconds| *seconds >= 0.0));
    }

    #[test]
    fn medians_by_hand() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }
}
