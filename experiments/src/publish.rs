//! Files of a run: JSON of each experiment, then figures and pages out of all the JSON in the folder.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::catalogue::{EXPERIMENTS, Experiment, GROUPS, Group};
use crate::context::Context;
use crate::page::{group_page, index_page};
use crate::record::Record;

/// Runs an experiment and writes its JSON.
///
/// # Errors
/// Those of the experiment, and of the file.
pub fn run(experiment: &Experiment, context: &Context, folder: &Path) -> Result<Record> {
    let (start, before) = (std::time::Instant::now(), processor_seconds());
    let mut record = (experiment.run)(context).with_context(|| format!("experiment {}", experiment.name))?;
    record.seconds = start.elapsed().as_secs_f64();
    record.processor_seconds = before.zip(processor_seconds()).map(|(before, after)| after - before);
    record.small = context.small;
    record.first_seed = context.seed;
    record.threads = rayon::current_num_threads();
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let file = folder.join(format!("{}.json", experiment.name));
    std::fs::write(&file, record.to_json()?).with_context(|| file.display().to_string())?;
    Ok(record)
}

/// Processor seconds of all threads of this process, if the system reports them (Linux, in ticks of 10 ms).
fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name, in parentheses, may hold spaces: fields are counted after it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / 100.0)
}

/// Draws all figures and writes all pages of a folder from its JSON files.
///
/// # Errors
/// If a file cannot be read or written, or a text names a number that is not there.
pub fn draw(folder: &Path) -> Result<()> {
    let mut groups: Vec<(&Group, Vec<Record>)> = Vec::new();
    for group in GROUPS {
        let files =
            EXPERIMENTS.iter().filter(|e| e.group == group.name).map(|e| folder.join(format!("{}.json", e.name)));
        let records = files.filter(|f| f.is_file()).map(|f| Record::read(&f)).collect::<Result<Vec<Record>>>()?;
        for figure in records.iter().flat_map(|r| &r.figures) {
            std::fs::write(folder.join(format!("{}.svg", figure.file)), figure.to_svg())?;
        }
        if !records.is_empty() {
            std::fs::write(folder.join(format!("{}.md", group.name)), group_page(group, &records)?)?;
            groups.push((group, records));
        }
    }
    std::fs::write(folder.join("README.md"), index_page(&groups)?)?;
    Ok(())
}
