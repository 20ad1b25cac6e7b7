//! Training algorithms.

mod ebipla;
mod lebm;
mod parameter_step;
mod posterior;
#[cfg(test)]
mod testing;
