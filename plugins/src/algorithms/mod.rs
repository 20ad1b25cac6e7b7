//! Training algorithms.

#[cfg(test)]
mod bias;
#[cfg(test)]
mod closed_form;
mod ebipla;
mod ebipla_full;
mod ebipla_underdamped;
#[cfg(test)]
mod finite_differences;
mod lebm;
mod parameter_step;
mod posterior;
#[cfg(test)]
mod posterior_start;
#[cfg(test)]
mod testing;
