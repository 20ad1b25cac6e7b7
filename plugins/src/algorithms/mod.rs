//! Training algorithms.

#[cfg(test)]
mod closed_form;
mod ebipla;
mod ebipla_full;
mod ebipla_underdamped;
mod lebm;
mod parameter_step;
mod posterior;
#[cfg(test)]
mod testing;
