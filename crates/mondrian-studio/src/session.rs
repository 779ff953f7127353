//! The one session that all tabs share: a table, its prepared rows, and the models fitted to them.

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::sync::broadcast;

use crate::api::{
    Choice, DataInfo, FileInfo, FitRequest, Kind, ModelInfo, Opened, Problem, State, Status, StreamInfo, TableInfo,
    Task, VERSION,
};
use crate::engine::{self, Model, Stream, Watch};
use crate::tables::{Data, ModelFile, Table, Tables};

/// Models of a session at most.
pub(crate) const MAX_MODELS: usize = 12;
/// Minimum time between two progress events.
const SEND_INTERVAL: Duration = Duration::from_millis(100);

/// An event sent to the pages.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// The table, the choice or the list of models changed.
    State,
    /// A model made progress.
    Model(Box<ModelInfo>),
    /// The stream made progress.
    Stream(Box<StreamInfo>),
}

/// A table and its interpretation.
pub(crate) struct OpenTable {
    pub(crate) table: Box<dyn Table>,
    pub(crate) info: TableInfo,
    path: PathBuf,
    _stored: Option<Stored>,
}

/// A model file; its model is a slot.
struct OpenFile {
    info: FileInfo,
    path: PathBuf,
    _stored: Option<Stored>,
}

/// A folder with an upload; removed with its table.
struct Stored(PathBuf);

impl Drop for Stored {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The last component of a file's name, made valid as a file name and as an argument of a command.
fn file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last.chars().filter(|c| !c.is_control()).take(100).collect();
    let plain = plain.trim_start_matches(['-', '.', ' ']).trim_end();
    if plain.is_empty() { "table.csv".to_owned() } else { plain.to_owned() }
}

/// Prepared rows and the choice behind them.
pub(crate) struct Prepared {
    pub(crate) data: Data,
    pub(crate) info: DataInfo,
}

/// A model that is being fitted or is ready.
pub(crate) struct Slot {
    pub(crate) id: u64,
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) model: OnceLock<Model>,
    cancelled: AtomicBool,
    info: Mutex<ModelInfo>,
    started: Instant,
}

#[derive(Default)]
struct Inner {
    generation: u64,
    table: Option<Arc<OpenTable>>,
    file: Option<Arc<OpenFile>>,
    prepared: Option<Arc<Prepared>>,
    models: Vec<Arc<Slot>>,
    next_id: u64,
    stream: Option<Arc<StreamSlot>>,
}

/// A stream of rows into a forest.
pub(crate) struct StreamSlot {
    prepared: Arc<Prepared>,
    stream: Mutex<Stream>,
    playing: AtomicBool,
}

/// The session.
pub(crate) struct Session {
    tables: Arc<dyn Tables>,
    folder: TempDir,
    inner: RwLock<Inner>,
    events: broadcast::Sender<Event>,
    pub(crate) max_upload: u64,
}

impl Session {
    pub(crate) fn new(tables: Arc<dyn Tables>, max_upload: u64) -> std::io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("mondrian-studio-").tempdir()?;
        let (events, _) = broadcast::channel(256);
        Ok(Self { tables, folder, inner: RwLock::default(), events, max_upload })
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    fn publish(&self, event: Event) {
        // An error means that no page is open.
        let _ = self.events.send(event);
    }

    /// A path for an upload, in a folder named by the server, so that no name can point elsewhere.
    pub(crate) fn upload_place(&self, name: &str) -> Result<PathBuf, Problem> {
        let failed = |e: std::io::Error| Problem::new(format!("the table cannot be stored: {e}"));
        let folder = tempfile::Builder::new().prefix("table-").tempdir_in(self.folder.path()).map_err(failed)?;
        Ok(folder.keep().join(file_name(name)))
    }

    fn read<T>(&self, look: impl FnOnce(&Inner) -> T) -> T {
        look(&self.inner.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        change(&mut self.inner.write().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn state(&self) -> State {
        self.read(|inner| State {
            version: VERSION,
            generation: inner.generation,
            table: inner.table.as_ref().map(|t| t.info.clone()),
            file: inner.file.as_ref().map(|f| f.info.clone()),
            data: inner.prepared.as_ref().map(|p| p.info.clone()),
            models: inner.models.iter().map(|slot| slot.info()).collect(),
            max_upload: self.max_upload,
            max_models: MAX_MODELS,
        })
    }

    /// Opens a table or a model of this machine that was named on the command line.
    pub(crate) fn open(self: &Arc<Self>, path: &Path) -> Result<Opened, Problem> {
        self.put(path, None)
    }

    /// Opens an uploaded table or model; its file is removed with it.
    pub(crate) fn open_upload(self: &Arc<Self>, path: &Path) -> Result<Opened, Problem> {
        let folder = path.parent().map(|folder| Stored(folder.to_path_buf()));
        self.put(path, folder)
    }

    /// Opens the table of the tour.
    pub(crate) fn open_tour(self: &Arc<Self>) -> Result<TableInfo, Problem> {
        let (name, text) = self.tables.tour();
        let place = self.upload_place(name)?;
        std::fs::write(&place, text).map_err(|e| Problem::new(format!("the table cannot be stored: {e}")))?;
        self.write(|inner| inner.file = None);
        self.open_upload(&place)?;
        Ok(self.table()?.info.clone())
    }

    fn put(self: &Arc<Self>, path: &Path, stored: Option<Stored>) -> Result<Opened, Problem> {
        if let Some(model) = guarded(|| self.tables.open_model(path))? {
            return self.put_model(model, path, stored);
        }
        let table = guarded(|| self.tables.open(path))?;
        let info = guarded(|| table.describe())?;
        let opened = Arc::new(OpenTable { table, info: info.clone(), path: path.to_path_buf(), _stored: stored });
        if let Some(file) = self.read(|inner| inner.file.clone()) {
            // The open model is evaluated on this table.
            let model = guarded(|| self.tables.open_model(&file.path))?;
            let model = model.ok_or_else(|| Problem::with_hint("the model file has changed", "open it again"))?;
            return self.judge(model, file, Some(opened));
        }
        self.write(|inner| {
            inner.clear_models();
            inner.table = Some(opened);
            inner.prepared = None;
        });
        self.publish(Event::State);
        Ok(Opened { table: Some(info), file: None })
    }

    /// A model file, evaluated on the open table if that has the model's columns; else the table is closed.
    fn put_model(self: &Arc<Self>, model: ModelFile, path: &Path, stored: Option<Stored>) -> Result<Opened, Problem> {
        let file = Arc::new(OpenFile { info: model.info.clone(), path: path.to_path_buf(), _stored: stored });
        let table = self.read(|inner| inner.table.clone());
        let fits = table.filter(|table| guarded(|| (model.rows)(&table.path)).is_ok_and(|part| !part.rows.is_empty()));
        self.judge(model, file, fits)
    }

    /// Shows a model of a file, evaluated on all rows of a table if there is one.
    fn judge(
        self: &Arc<Self>,
        model: ModelFile,
        file: Arc<OpenFile>,
        table: Option<Arc<OpenTable>>,
    ) -> Result<Opened, Problem> {
        let ModelFile { info, seed, model, mut data, rows } = model;
        if let Some(table) = &table {
            data.held_out = guarded(|| rows(&table.path)).map_err(|problem| Problem {
                message: format!("the table does not fit the model {}: {}", info.name, problem.message),
                hint: Some("give a table with the model's columns, or close the model first".to_owned()),
                ..problem
            })?;
        }
        let choice = Choice { target: data.target.clone(), ..Choice::default() };
        let mut described = describe(&data, choice, Vec::new());
        described.n_train = info.rows as usize;
        let prepared = Arc::new(Prepared { data, info: described });
        let request = FitRequest { kind: info.kind, trees: engine::n_trees(&model), seed, lifetimes: None };
        let opened = Opened { table: table.as_ref().map(|t| t.info.clone()), file: Some(info.clone()) };
        let slot = self.write(|inner| {
            inner.clear_models();
            inner.table = table;
            inner.file = Some(file);
            inner.prepared = Some(Arc::clone(&prepared));
            inner.next_id += 1;
            let slot = Arc::new(Slot::new(inner.next_id, request, prepared, Some(info.name)));
            inner.models.push(Arc::clone(&slot));
            slot
        });
        self.publish(Event::State);
        self.begin(slot, move |data, watch| engine::open(model, data, watch))?;
        Ok(opened)
    }

    pub(crate) fn table(&self) -> Result<Arc<OpenTable>, Problem> {
        self.read(|inner| inner.table.clone()).ok_or_else(|| Problem::with_hint("no table is open", "open one first"))
    }

    pub(crate) fn prepared(&self) -> Result<Arc<Prepared>, Problem> {
        let prepared = self.read(|inner| inner.prepared.clone());
        prepared.ok_or_else(|| Problem::with_hint("no columns are chosen", "choose a target first"))
    }

    /// Prepares the rows for a choice of columns; models of another choice are dropped.
    pub(crate) fn choose(&self, choice: &Choice) -> Result<DataInfo, Problem> {
        let opened = self.table()?;
        let data = guarded(|| opened.table.prepare(choice))?;
        if data.train.rows.is_empty() || data.held_out.rows.is_empty() {
            return Err(Problem::with_hint("too few rows to hold some out", "give at least a dozen"));
        }
        let kinds = match data.task {
            Some(Task::Regression) => vec![Kind::Laplace, Kind::Forest, Kind::Kernel, Kind::Grid, Kind::Density],
            Some(Task::Classification) => vec![Kind::Laplace, Kind::Forest, Kind::Density],
            None => vec![Kind::Density],
        };
        let info = describe(&data, choice.clone(), kinds);
        let prepared = Arc::new(Prepared { data, info: info.clone() });
        self.write(|inner| {
            inner.clear_models();
            inner.file = None;
            inner.prepared = Some(prepared);
        });
        self.publish(Event::State);
        Ok(info)
    }

    /// Starts a fit on its own thread.
    pub(crate) fn fit(self: &Arc<Self>, request: FitRequest) -> Result<ModelInfo, Problem> {
        let prepared = self.prepared()?;
        if !prepared.info.kinds.contains(&request.kind) {
            let message = format!("a {} model cannot be fitted to these rows", request.kind.name());
            return Err(Problem::with_hint(message, "choose a table and its columns first"));
        }
        let requested = request.clone();
        let slot = self.write(|inner| {
            if inner.models.len() >= MAX_MODELS {
                let message = format!("{MAX_MODELS} models are open");
                return Err(Problem::with_hint(message, "remove one first"));
            }
            inner.next_id += 1;
            let slot = Arc::new(Slot::new(inner.next_id, request, prepared, None));
            inner.models.push(Arc::clone(&slot));
            Ok(slot)
        })?;
        let info = slot.info();
        self.publish(Event::State);
        self.begin(slot, move |data, watch| engine::fit(data, &requested, watch))?;
        Ok(info)
    }

    /// Fits a model on a separate thread.
    fn begin(
        self: &Arc<Self>,
        slot: Arc<Slot>,
        make: impl FnOnce(&Data, Watch<'_>) -> Result<Model, Problem> + Send + 'static,
    ) -> Result<(), Problem> {
        let session = Arc::clone(self);
        std::thread::Builder::new()
            .name(format!("fit-{}", slot.id))
            .spawn(move || session.work(&slot, make))
            .map_err(|e| Problem::new(format!("no thread can be started: {e}")))?;
        Ok(())
    }

    fn work(&self, slot: &Slot, make: impl FnOnce(&Data, Watch<'_>) -> Result<Model, Problem>) {
        let mut last_sent = Instant::now();
        let outcome = guarded(|| {
            let model = make(&slot.prepared.data, &mut |stage, progress| {
                if slot.cancelled.load(Ordering::Relaxed) {
                    return ControlFlow::Break(());
                }
                if last_sent.elapsed() > SEND_INTERVAL {
                    last_sent = Instant::now();
                    self.publish(slot.note(|info| {
                        stage.clone_into(&mut info.stage);
                        info.progress = progress;
                    }));
                }
                ControlFlow::Continue(())
            })?;
            let score = model.score(&slot.prepared.data)?;
            Ok((model, score))
        });
        let cancelled = slot.cancelled.load(Ordering::Relaxed);
        let event = slot.note(|info| match outcome {
            _ if cancelled => info.status = Status::Cancelled,
            Ok((model, score)) => {
                info.status = Status::Ready;
                info.score = Some(score);
                info.progress = Some(1.0);
                let _ = slot.model.set(model);
            }
            Err(problem) => {
                info.status = Status::Failed;
                info.problem = Some(problem);
            }
        });
        self.publish(event);
        // After the model is shown; until then moves of the slider have no standard deviations.
        if let Some(model) = slot.model.get() {
            let _ = guarded(|| model.prepare_moves(&slot.prepared.data, &|| slot.is_cancelled()));
        }
    }

    pub(crate) fn slot(&self, id: u64) -> Result<Arc<Slot>, Problem> {
        let slot = self.read(|inner| inner.models.iter().find(|slot| slot.id == id).cloned());
        slot.ok_or_else(|| Problem::with_hint(format!("there is no model {id}"), "it was removed; choose another"))
    }

    /// Cancels a fit; it ends at its next progress report.
    pub(crate) fn cancel(&self, id: u64) -> Result<(), Problem> {
        self.slot(id)?.cancelled.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Cancels a fit and removes the model.
    pub(crate) fn remove(&self, id: u64) -> Result<(), Problem> {
        self.cancel(id)?;
        self.write(|inner| {
            inner.models.retain(|slot| slot.id != id);
            // Without its model, a file and its columns are useless; a table it was evaluated on is kept.
            if inner.models.is_empty() && inner.file.take().is_some() {
                inner.clear_models();
                inner.prepared = None;
            }
        });
        self.publish(Event::State);
        Ok(())
    }

    /// Cancels all running work and removes temporary files.
    pub(crate) fn stop(&self) {
        self.tables.stop();
        self.write(|inner| {
            inner.clear_models();
            (inner.table, inner.file) = (None, None);
        });
        // A fit that has not ended yet still owns the session: remove the folder now.
        let _ = std::fs::remove_dir_all(self.folder.path());
    }

    /// Feeds rows into a forest, on its own thread, until paused or at the end.
    pub(crate) fn play(self: &Arc<Self>, restart: bool) -> Result<StreamInfo, Problem> {
        let prepared = self.prepared()?;
        if prepared.data.task.is_none() || prepared.info.kinds.is_empty() {
            return Err(Problem::with_hint("a stream needs a table and a target", "choose the column to predict"));
        }
        let slot = self.write(|inner| {
            let old = inner.stream.take().filter(|old| !restart && Arc::ptr_eq(&old.prepared, &prepared));
            let slot = old.unwrap_or_else(|| {
                let stream = Mutex::new(Stream::new(&prepared.data));
                Arc::new(StreamSlot { prepared, stream, playing: AtomicBool::new(false) })
            });
            inner.stream = Some(Arc::clone(&slot));
            slot
        });
        if !slot.playing.swap(true, Ordering::SeqCst) {
            let (session, playing) = (Arc::clone(self), Arc::clone(&slot));
            std::thread::Builder::new()
                .name("stream".to_owned())
                .spawn(move || session.feed(&playing))
                .map_err(|e| Problem::new(format!("no thread can be started: {e}")))?;
        }
        Ok(slot.info())
    }

    fn feed(&self, slot: &StreamSlot) {
        let mut last_sent = Instant::now();
        while slot.playing.load(Ordering::SeqCst) {
            match guarded(|| lock(&slot.stream).step(&slot.prepared.data)) {
                Ok(true) => {}
                Ok(false) => slot.playing.store(false, Ordering::SeqCst),
                Err(problem) => {
                    slot.playing.store(false, Ordering::SeqCst);
                    let info = StreamInfo { problem: Some(problem), ..slot.info() };
                    self.publish(Event::Stream(Box::new(info)));
                    return;
                }
            }
            if last_sent.elapsed() > SEND_INTERVAL {
                last_sent = Instant::now();
                self.publish(Event::Stream(Box::new(slot.info())));
            }
            // Slow at the start, so that the user can follow.
            let seen = lock(&slot.stream).info().seen;
            std::thread::sleep(Duration::from_millis(if seen < 200 { 15 } else { 5 }));
        }
        self.publish(Event::Stream(Box::new(slot.info())));
    }

    pub(crate) fn pause(&self) -> Result<StreamInfo, Problem> {
        let slot = self.stream()?;
        slot.playing.store(false, Ordering::SeqCst);
        Ok(slot.info())
    }

    pub(crate) fn forget(&self, position: usize) -> Result<StreamInfo, Problem> {
        let slot = self.stream()?;
        guarded(|| lock(&slot.stream).forget(&slot.prepared.data, position))?;
        let info = slot.info();
        self.publish(Event::Stream(Box::new(info.clone())));
        Ok(info)
    }

    fn stream(&self) -> Result<Arc<StreamSlot>, Problem> {
        let slot = self.read(|inner| inner.stream.clone());
        slot.ok_or_else(|| Problem::with_hint("no stream has been started", "press play first"))
    }
}

/// Prepared rows, for the page.
fn describe(data: &Data, choice: Choice, kinds: Vec<Kind>) -> DataInfo {
    let which = engine::shown(&data.held_out);
    DataInfo {
        choice,
        task: data.task,
        classes: data.classes.clone(),
        features: data.features.clone(),
        axes: data.axes.clone(),
        inputs: data.inputs.clone(),
        n_train: data.train.rows.len(),
        n_held_out: data.held_out.rows.len(),
        shown_rows: which.iter().map(|&row| data.held_out.rows[row]).collect(),
        observed: which.iter().filter_map(|&row| data.held_out.y.get(row)).copied().collect(),
        kinds,
    }
}

impl StreamSlot {
    fn info(&self) -> StreamInfo {
        StreamInfo { playing: self.playing.load(Ordering::SeqCst), ..lock(&self.stream).info().clone() }
    }
}

impl Inner {
    fn clear_models(&mut self) {
        for slot in self.models.drain(..) {
            slot.cancelled.store(true, Ordering::Relaxed);
        }
        if let Some(stream) = self.stream.take() {
            stream.playing.store(false, Ordering::SeqCst);
        }
        self.generation += 1;
    }
}

impl Slot {
    fn new(id: u64, request: FitRequest, prepared: Arc<Prepared>, file: Option<String>) -> Self {
        let info = ModelInfo {
            id,
            request,
            status: Status::Running,
            stage: "starting".to_owned(),
            progress: None,
            seconds: 0.0,
            problem: None,
            score: None,
            file,
        };
        Self {
            id,
            prepared,
            model: OnceLock::new(),
            cancelled: AtomicBool::new(false),
            info: Mutex::new(info),
            started: Instant::now(),
        }
    }

    pub(crate) fn info(&self) -> ModelInfo {
        let mut info = lock(&self.info).clone();
        if info.status == Status::Running {
            info.seconds = self.started.elapsed().as_secs_f64();
        }
        info
    }

    fn note(&self, change: impl FnOnce(&mut ModelInfo)) -> Event {
        let mut info = lock(&self.info);
        info.seconds = self.started.elapsed().as_secs_f64();
        change(&mut info);
        Event::Model(Box::new(info.clone()))
    }

    /// The fitted model.
    pub(crate) fn ready(&self) -> Result<&Model, Problem> {
        self.model.get().ok_or_else(|| Problem::with_hint(format!("model {} is not ready", self.id), "wait for it"))
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs work whose panic must not end the server.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| Err(panicked(cause.as_ref())))
}

fn panicked(cause: &(dyn Any + Send)) -> Problem {
    let text = cause.downcast_ref::<String>().map(String::as_str).or(cause.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("unknown");
    Problem::with_hint(format!("internal error: {text}"), "please report it; the studio continues")
}
