//! `mondrian learn`: each row of a stream is predicted and then learned; no row is lost once its line is printed.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use mondrian::internals::forest::ForestCalibration;
use serde_json::json;

use crate::args::{LearnArgs, Window};
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::journal::{Entry, Identity, Journal};
use crate::lock::ModelLock;
use crate::model::{Answer, Fitted, Model, quoted};
use crate::prepare::{Besides, Prepared, RowPreparer};
use crate::save::is_standard;
use crate::scores::{Scores, most_probable};
use crate::screen::{Screen, check_stdout};
use crate::table::{Kind, RowStream, TextRow, raw_row};

/// Capacity of the queue between the reader and the model.
const WAITING: usize = 1024;
/// Largest number of rows processed before their lines are printed.
const TURN: usize = 256;
/// Intervals are recalibrated when the number of rows has grown by one over this number.
const CALIBRATED_AFTER: usize = 20;

/// Messages of the reader's thread.
enum Message {
    Row(TextRow),
    End,
    Failed(Failure),
    /// A signal, which only wakes the receiver.
    Stop,
}

/// A model that learns a stream.
struct Learner<'a> {
    fitted: Fitted,
    preparer: RowPreparer<'a>,
    names: Vec<String>,
    kinds: Vec<Kind>,
    journal: Option<Journal>,
    lock: ModelLock,
    scores: Scores,
    /// Known classes, including those in the journal.
    n_classes: usize,
    n_learned: u64,
    n_seen: u64,
    n_dropped: u64,
    /// The calibration of intervals, and the number of learned rows up to which it is used.
    calibration: Option<(ForestCalibration, u64)>,
    saved: Instant,
    args: &'a LearnArgs,
    json: bool,
}

pub(crate) fn run(args: &LearnArgs, screen: Screen) -> Outcome<()> {
    check_stdout()?;
    let lock = ModelLock::take(&args.model)?;
    let (mut fitted, identity) = Fitted::load_with_identity(&args.model)?;
    fitted.model.check_online()?;
    if let Some(window) = args.window {
        fitted.model.set_window(if let Window::Last(n) = window { Some(n) } else { None })?;
        fitted.count(0);
    }
    let preparation = fitted.record.preparation.clone();
    let missing = args.missing.missing.unwrap_or(preparation.missing);
    let place = if is_standard(&args.rows) { "standard input".to_owned() } else { args.rows.display().to_string() };
    let (mut names, mut kinds): (Vec<String>, Vec<Kind>) =
        RowPreparer::input_kinds(&preparation).map(|(name, kind)| (name.to_owned(), kind)).unzip();
    let mut target_kind = Kind::Text;
    if let Some(target) = &preparation.target {
        let numbers = target.classes.as_ref().is_none_or(|c| c.iter().all(|c| c.parse::<f64>().is_ok()));
        target_kind = if numbers && !args.new_classes || target.classes.is_none() { Kind::Number } else { Kind::Text };
        names.push(target.name.clone());
        kinds.push(target_kind);
    }
    let besides = Besides { new_classes: args.new_classes, ..Besides::learning() };
    let preparer = RowPreparer::new(&preparation, missing, &besides, target_kind, &place);
    let n_classes = preparer.classes().map_or(0, |classes| classes.len());
    let journal = Some(Journal::open(&args.model, identity)?);
    let mut learner = Learner {
        fitted,
        preparer,
        names,
        kinds,
        journal,
        lock,
        scores: Scores::default(),
        n_classes,
        n_learned: 0,
        n_seen: 0,
        n_dropped: 0,
        calibration: None,
        saved: Instant::now(),
        args,
        json: screen.json,
    };
    if args.window.is_some() {
        // Rows of the journal are learned by the model of the file: its window must be set before the first of them.
        learner.checkpoint()?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let rows = read_in_background(args, learner.names.clone(), &place, &stop)?;
    let outcome = learner.follow(&rows, &stop, &place);
    // However the stream ended, the model is saved first; then the error is reported.
    let (n_learned, n_seen) = (learner.n_learned, learner.n_seen);
    let line = (learner.scores.n() > 0).then(|| learner.scores.line(args.coverage));
    let total = learner.finish()?;
    outcome?;
    if let Some(line) = line {
        screen.message(format!("each row predicted before it was learned: {line}"));
    }
    screen.message(format!("learned {n_learned} of {n_seen} rows, {total} in all; wrote {}", args.model.display()));
    if screen.json {
        let done = json!({ "done": true, "learned": n_learned, "seen": n_seen, "rows": total, "out": args.model });
        crate::screen::print_line(&done.to_string()).or_else(|failure| match failure {
            Failure::ClosedPipe => Ok(()),
            other => Err(other),
        })?;
    }
    Ok(())
}

/// Starts the thread that reads rows, so that signals are handled while it waits for input.
fn read_in_background(
    args: &LearnArgs,
    names: Vec<String>,
    place: &str,
    stop: &Arc<AtomicBool>,
) -> Outcome<Receiver<Message>> {
    let (sender, receiver) = sync_channel(WAITING);
    let (woken, stop) = (sender.clone(), Arc::clone(stop));
    interrupt::on_stop(move || {
        stop.store(true, Ordering::Relaxed);
        // A full channel wakes the receiver anyway.
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = woken.try_send(Message::Stop) {}
    });
    let separator = args.separator()?;
    let place = place.to_owned();
    let path = args.rows.clone();
    if !is_standard(&path) {
        // Reported immediately, and not from the thread.
        std::fs::File::open(&path).map_err(|e| Failure::reading(&path, &e))?;
    }
    std::thread::spawn(move || {
        let ended = if is_standard(&path) {
            send_rows(io::stdin(), names, separator, &place, &sender)
        } else {
            std::fs::File::open(&path)
                .map_err(|e| Failure::reading(&path, &e))
                .and_then(|file| send_rows(file, names, separator, &place, &sender))
        };
        // If the receiver has been dropped, the message is not needed.
        let _ = sender.send(ended.map_or_else(Message::Failed, |()| Message::End));
    });
    Ok(receiver)
}

fn send_rows(
    from: impl io::Read,
    names: Vec<String>,
    separator: Option<u8>,
    place: &str,
    sender: &SyncSender<Message>,
) -> Outcome<()> {
    let mut stream = RowStream::open(from, names, separator, place)?;
    while let Some(row) = stream.next_row()? {
        if sender.send(Message::Row(row)).is_err() {
            break;
        }
    }
    Ok(())
}

impl Learner<'_> {
    /// Processes rows until the stream ends, fails or a signal arrives.
    fn follow(&mut self, rows: &Receiver<Message>, stop: &AtomicBool, place: &str) -> Outcome<()> {
        let mut out = io::stdout().lock();
        if !self.json {
            writeln!(out, "{}", self.header()).and_then(|()| out.flush()).map_err(|e| Failure::stdout(&e))?;
        }
        let mut lines = String::new();
        let mut end = None;
        while end.is_none() && !stop.load(Ordering::Relaxed) {
            lines.clear();
            let mut next = rows.recv_timeout(self.until_checkpoint()).ok();
            let mut n = 0;
            while let Some(message) = next {
                match message {
                    Message::Row(row) => {
                        n += 1;
                        if let Err(failure) = self.row(&row, place, &mut lines) {
                            end = Some(Err(failure));
                        }
                    }
                    Message::End => end = Some(Ok(())),
                    Message::Failed(failure) => end = Some(Err(failure)),
                    Message::Stop => {}
                }
                let more = end.is_none() && n < TURN && !stop.load(Ordering::Relaxed);
                next = if more { rows.try_recv().ok() } else { None };
            }
            // Write the journal first: a row whose line is printed must not be lost.
            if let Some(journal) = &mut self.journal {
                journal.flush()?;
            }
            match out.write_all(lines.as_bytes()).and_then(|()| out.flush()).map_err(|e| Failure::stdout(&e)) {
                Err(Failure::ClosedPipe) => return Ok(()),
                other => other?,
            }
            self.checkpoint_if_due()?;
        }
        end.unwrap_or(Ok(()))
    }

    fn until_checkpoint(&self) -> Duration {
        let waiting = self.journal.as_ref().is_some_and(|journal| journal.n_rows() > 0);
        let after = Duration::from_secs(self.args.checkpoint_seconds.max(1));
        if waiting { after.saturating_sub(self.saved.elapsed()) } else { Duration::from_secs(3600) }
    }

    /// Predicts a row, then learns it.
    fn row(&mut self, cells: &TextRow, place: &str, lines: &mut String) -> Outcome<()> {
        self.n_seen += 1;
        let has_target = self.fitted.record.preparation.target.is_none() || cells.last().is_some_and(Option::is_some);
        let mut batch = raw_row(cells, &self.kinds, &self.names, self.n_seen, place)?;
        if !has_target {
            // A row without a target is only predicted: a placeholder is used while inputs are prepared.
            self.stand_in(&mut batch);
        }
        let prepared = self.preparer.prepare(&batch)?;
        if prepared.rows.is_empty() {
            self.n_dropped += 1;
            lines.push_str(&self.line(None, f64::NAN));
            return Ok(());
        }
        let points = prepared.points(&self.fitted.record.preparation)?;
        let coverage = self.args.intervals.then_some(self.args.coverage);
        if let (Some(_), Model::Forest(model)) = (coverage, &self.fitted.model) {
            match &self.calibration {
                Some((calibration, until)) if self.n_learned < *until => model.hold_calibration(calibration),
                _ => {
                    let until = self.n_learned + (model.n_rows() / CALIBRATED_AFTER) as u64 + 1;
                    self.calibration = Some((model.calibration(), until));
                }
            }
        }
        let answer = self.fitted.model.predict(prepared.inputs(&self.fitted.record.preparation), coverage)?;
        let density = matches!(self.fitted.model, Model::Density(_));
        let y = if has_target { prepared.y.first().copied().unwrap_or(f64::NAN) } else { f64::NAN };
        self.scores.add(&answer, &[y], density);
        if has_target {
            self.name_new_classes();
            self.fitted.model.learn(points, &prepared)?;
            self.fitted.count(1);
            self.n_learned += 1;
            self.keep(&prepared);
        }
        lines.push_str(&self.line(Some(&answer), y));
        Ok(())
    }

    fn stand_in(&self, batch: &mut crate::table::RawBatch) {
        let classes = self.preparer.classes();
        let first = classes.as_ref().and_then(|classes| classes.first());
        if let Some(cells) = batch.columns.last_mut() {
            *cells = match (self.kinds.last(), first) {
                (Some(Kind::Text), Some(class)) => {
                    crate::table::Cells::Texts(vec![Some(class.clone().into_boxed_str())])
                }
                (_, class) => crate::table::Cells::Numbers(vec![class.and_then(|c| c.parse().ok()).unwrap_or(0.0)]),
            };
        }
    }

    fn keep(&mut self, prepared: &Prepared) {
        if let Some(journal) = &mut self.journal {
            journal.add(&Entry::Row { x: prepared.x.clone(), y: prepared.y.first().copied().unwrap_or(0.0) });
        }
    }

    /// Adds new classes to the journal, before their first row, and to the record.
    fn name_new_classes(&mut self) {
        let Some(classes) = self.preparer.classes().filter(|classes| classes.len() > self.n_classes) else { return };
        for class in &classes[self.n_classes..] {
            if let Some(journal) = &mut self.journal {
                journal.add(&Entry::Class(class.clone()));
            }
        }
        self.n_classes = classes.len();
        super::update::add_classes(&mut self.fitted, Some(&classes));
    }

    fn header(&self) -> String {
        match &self.fitted.model {
            Model::Density(_) => "log_density,mean_log_density".to_owned(),
            Model::Classifier(_) => "prediction,probability,target,error_rate".to_owned(),
            _ if self.args.intervals => "prediction,std,lower,upper,target,rmse".to_owned(),
            _ => "prediction,target,rmse".to_owned(),
        }
    }

    /// The line of a row: the prediction made before it was learned, its target, and the error so far.
    fn line(&self, answer: Option<&Answer>, y: f64) -> String {
        let classes = self.fitted.record.preparation.target.as_ref().and_then(|t| t.classes.as_ref());
        let cell = |x: f64| if x.is_finite() { x.to_string() } else { String::new() };
        let running = if self.scores.n() > 0 { self.scores.running() } else { f64::NAN };
        let mut cells: Vec<(&str, String)> = match answer {
            None => self.header().split(',').map(|_| ("", String::new())).collect(),
            Some(Answer::Mean(mean)) if matches!(self.fitted.model, Model::Density(_)) => {
                vec![("log_density", mean[0].to_string())]
            }
            Some(Answer::Mean(mean)) => vec![("prediction", mean[0].to_string())],
            Some(Answer::Regression { mean, std, lower, upper }) => vec![
                ("prediction", mean[0].to_string()),
                ("std", std[0].to_string()),
                ("lower", lower[0].to_string()),
                ("upper", upper[0].to_string()),
            ],
            Some(Answer::Classes(probabilities)) => {
                let best = most_probable(probabilities);
                let name = classes.and_then(|classes| classes.get(best)).cloned().unwrap_or_default();
                vec![("prediction", name), ("probability", probabilities[best].to_string())]
            }
        };
        if answer.is_some() && !matches!(self.fitted.model, Model::Density(_)) {
            let target = match classes {
                Some(classes) if y.is_finite() => classes.get(y as usize).cloned().unwrap_or_default(),
                Some(_) => String::new(),
                None => cell(y),
            };
            cells.push(("target", target));
        }
        if answer.is_some() {
            let names = self.header();
            cells.push((
                if names.contains("mean_log_density") {
                    "mean_log_density"
                } else if names.ends_with("rmse") {
                    "rmse"
                } else {
                    "error_rate"
                },
                cell(running),
            ));
        }
        if !self.json {
            return cells.iter().map(|(_, text)| quoted(text)).collect::<Vec<_>>().join(",") + "\n";
        }
        let mut object = json!({ "row": self.n_seen });
        for (name, text) in cells.iter().filter(|(name, text)| !name.is_empty() && !text.is_empty()) {
            let is_name = classes.is_some() && ["prediction", "target"].contains(name);
            object[*name] = if is_name { json!(text) } else { text.parse::<f64>().map_or(json!(text), |x| json!(x)) };
        }
        object.to_string() + "\n"
    }

    fn checkpoint_if_due(&mut self) -> Outcome<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let rows = journal.n_rows();
        let due = rows >= self.args.checkpoint_rows.max(1)
            || (rows > 0 && self.saved.elapsed() >= Duration::from_secs(self.args.checkpoint_seconds.max(1)));
        if due { self.checkpoint() } else { Ok(()) }
    }

    /// Writes the model with all rows so far; the journal starts over.
    fn checkpoint(&mut self) -> Outcome<()> {
        let Some(mut journal) = self.journal.take() else { return Ok(()) };
        let path: &Path = &self.args.model;
        let (file, identity): (_, Identity) = self.fitted.write_beside(path)?;
        journal.add(&Entry::Checkpoint(identity));
        journal.flush()?;
        journal.sync()?;
        self.lock.passes_to(file.commit()?);
        self.journal = Some(journal.restart(path, identity)?);
        self.saved = Instant::now();
        Ok(())
    }

    /// Saves the model and removes the journal. Returns the rows in the model.
    fn finish(mut self) -> Outcome<u64> {
        let total = self.fitted.record.preparation.n_rows;
        if let Some(journal) = &mut self.journal {
            journal.flush()?;
        }
        // Rows from the journal of an earlier process are in the model too.
        self.fitted.save(&self.args.model)?;
        drop(self.lock);
        Ok(total)
    }
}
