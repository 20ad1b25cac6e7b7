//! `runner bench`: how fast this machine computes.

use clap::ValueEnum;
use ebipla_core::system::device;
use serde_json::json;

use super::arguments::BenchArguments;
use super::misuse::Misuse;
use super::{Program, print};
use crate::bench::{self, Part, Peers, Settings};

pub fn bench(program: &Program, arguments: &BenchArguments) -> anyhow::Result<()> {
    let peers = match arguments.peers {
        true => Some(Peers::find(program.home.sources()).map_err(|why| Misuse(why.to_string()))?),
        false => None,
    };
    let device = device::resolve(&arguments.device).map_err(|why| Misuse(why.to_string()))?;
    let settings = Settings {
        registry: &program.registry,
        folders: program.home.recipe_folders(),
        device,
        threads: arguments
            .threads
            .map_or_else(tch::get_num_threads, |threads| threads as i32),
        rounds: arguments.rounds as usize,
    };
    tch::set_num_threads(settings.threads);
    let parts = match &arguments.parts[..] {
        [] => Part::value_variants(),
        some => some,
    };
    let machine = json!({
        "cpu": device::cpu(),
        "device": device::name(device),
        "threads": settings.threads,
        "libtorch": env!("LIBTORCH_VERSION"),
    });
    if !arguments.json {
        let cpu = machine["cpu"].as_str().unwrap_or("unknown processor");
        let name = device::name(device);
        let libtorch = env!("LIBTORCH_VERSION");
        print(&format!(
            "{cpu}, {} threads, device {name}, libtorch {libtorch}; medians of {} rounds\n",
            settings.threads, settings.rounds
        ))?;
    }
    let mut tables = Vec::new();
    for part in parts {
        for table in bench::measure(*part, &settings, peers.as_ref())? {
            if !arguments.json {
                print(&format!("\n{}", table.to_text()))?;
            }
            tables.push(table.to_json());
        }
    }
    if arguments.json {
        print(&format!(
            "{:#}\n",
            json!({ "machine": machine, "tables": tables })
        ))?;
    }
    Ok(())
}
