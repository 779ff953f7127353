//! `experiments`: repeats the report's figures and writes pages about them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
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
    /// Threads; only times depend on them [default: one per core].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Small versions, of seconds.
    #[arg(long)]
    small: bool,
}

/// What is to be done, checked: whatever is wrong with it is the caller's to update.
enum Plan {
    List,
    Draw,
    Run(Context, Vec<&'static Experiment>),
}

/// The error is printed on standard error; the exit status is 2 for invalid arguments and 1 for other errors.
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (outcome, code) = match plan(&arguments) {
        Ok(plan) => (carry_out(plan, &arguments.out), 1),
        Err(error) => (Err(error), 2),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("experiments: {error:#}");
            ExitCode::from(code)
        }
    }
}

fn plan(arguments: &Arguments) -> Result<Plan> {
    let words: Vec<&str> = arguments.what.iter().map(String::as_str).collect();
    let chosen: Vec<&'static Experiment> = match words[..] {
        ["list"] => return Ok(Plan::List),
        ["draw"] => {
            let any = EXPERIMENTS.iter().any(|e| arguments.out.join(format!("{}.json", e.name)).is_file());
            ensure!(any, "{} holds no JSON of an experiment; name another folder with --out", arguments.out.display());
            return Ok(Plan::Draw);
        }
        ["all"] => EXPERIMENTS.iter().collect(),
        _ => words.iter().map(|word| find(word)).collect::<Result<_>>()?,
    };
    if let Some(threads) = arguments.threads {
        rayon::ThreadPoolBuilder::new().num_threads(usize::from(threads)).build_global().context("--threads")?;
    }
    let data = arguments.data.clone().or_else(mondrian_benches::data_folder);
    let context = Context { data, seed: arguments.seed, small: arguments.small, verbose: true };
    chosen.iter().try_for_each(|experiment| has_tables(&context, experiment))?;
    Ok(Plan::Run(context, chosen))
}

fn find(word: &str) -> Result<&'static Experiment> {
    if ["all", "list", "draw"].contains(&word) {
        bail!("`{word}` stands alone");
    }
    EXPERIMENTS
        .iter()
        .find(|e| e.name == word)
        .with_context(|| format!("no experiment {word:?}; `experiments list` names them"))
}

/// Asked before anything runs, so that a missing file does not end a run of many minutes.
fn has_tables(context: &Context, experiment: &Experiment) -> Result<()> {
    for table in experiment.tables {
        let Some(folder) = &context.data else {
            bail!("{} needs real data; name its folder with --data or MONDRIAN_DATA", experiment.name)
        };
        ensure!(folder.is_dir(), "no data folder {}", folder.display());
        ensure!(
            context.has(&[table]),
            "{} needs {table}.csv.gz, which is not in {}",
            experiment.name,
            folder.display()
        );
    }
    Ok(())
}

fn carry_out(plan: Plan, out: &Path) -> Result<()> {
    match plan {
        Plan::List => EXPERIMENTS.iter().for_each(|e| println!("{:<20} {}", e.name, e.about)),
        Plan::Draw => publish::draw(out)?,
        Plan::Run(context, chosen) => run(&context, &chosen, out)?,
    }
    Ok(())
}

fn run(context: &Context, chosen: &[&'static Experiment], out: &Path) -> Result<()> {
    let start = std::time::Instant::now();
    for (number, experiment) in chosen.iter().enumerate() {
        eprintln!("[{}/{}] {}: {}", number + 1, chosen.len(), experiment.name, experiment.about);
        let record = publish::run(experiment, context, out)?;
        for claim in &record.claims {
            eprintln!("    {} {}", if claim.holds { "holds:" } else { "DOES NOT HOLD:" }, record.fill(&claim.text)?);
        }
        eprintln!("    {:.1} s", record.seconds);
    }
    publish::draw(out)?;
    eprintln!("done in {:.1} s; see {}", start.elapsed().as_secs_f64(), out.join("README.md").display());
    Ok(())
}
