//! `experiments`: repeats the report's figures and writes pages about them.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use mondrian_experiments::catalogue::{EXPERIMENTS, Experiment};
use mondrian_experiments::{Context, publish};

/// Repeats the report's experiments: figures (SVG), numbers (JSON) and pages (Markdown).
#[derive(Debug, Parser)]
#[command(name = "experiments", version)]
struct Arguments {
    /// `all`, `list`, `draw` (figures and pages from the JSON there is), or names of experiments.
    #[arg(required = true)]
    what: Vec<String>,
    /// Folder of the real data [default: $MONDRIAN_DATA, else ../shared/data].
    #[arg(long)]
    data: Option<PathBuf>,
    /// Where everything is written.
    #[arg(long, default_value = "docs/experiments")]
    out: PathBuf,
    /// Added to every seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads; only times depend on them [default: one a core].
    #[arg(long)]
    threads: Option<usize>,
    /// Small versions, of seconds.
    #[arg(long)]
    small: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("experiments: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    if arguments.what == ["list"] {
        for experiment in EXPERIMENTS {
            println!("{:<20} {}", experiment.name, experiment.about);
        }
        return Ok(());
    }
    if arguments.what == ["draw"] {
        return publish::draw(&arguments.out);
    }
    if let Some(threads) = arguments.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().context("--threads")?;
    }
    let data = arguments.data.clone().or_else(mondrian_benches::data_folder);
    let context = Context { data, seed: arguments.seed, small: arguments.small, talk: true };
    let chosen = chosen(&arguments.what)?;
    let start = std::time::Instant::now();
    for (number, experiment) in chosen.iter().enumerate() {
        eprintln!("[{}/{}] {}: {}", number + 1, chosen.len(), experiment.name, experiment.about);
        let record = publish::run(experiment, &context, &arguments.out)?;
        for claim in &record.claims {
            eprintln!("    {} {}", if claim.holds { "holds:" } else { "DOES NOT HOLD:" }, record.fill(&claim.text)?);
        }
        eprintln!("    {:.1} s", record.seconds);
    }
    publish::draw(&arguments.out)?;
    eprintln!("done in {:.1} s; see {}", start.elapsed().as_secs_f64(), arguments.out.join("README.md").display());
    Ok(())
}

/// The experiments that the words name.
fn chosen(words: &[String]) -> Result<Vec<&'static Experiment>> {
    if words == ["all"] {
        return Ok(EXPERIMENTS.iter().collect());
    }
    let find = |word: &String| match EXPERIMENTS.iter().find(|e| e.name == word) {
        Some(experiment) => Ok(experiment),
        None => bail!("no experiment {word:?}; `experiments list` names them"),
    };
    words.iter().map(find).collect()
}
