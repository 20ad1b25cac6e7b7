//! Prior samplers: Markov chains that approach exp(−U/τ).

#[cfg(test)]
mod blocks;
mod hmc;
mod langevin;
mod mala;
mod metropolis;
mod statistics;
mod tamed_ula;
#[cfg(test)]
mod testing;
mod ula;
mod underdamped;
