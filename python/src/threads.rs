//! Execution of work: without the interpreter's lock, on `n_jobs` threads, interruptible by Ctrl-C.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use mondrian::Progress;
use mondrian::{Error, Result};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors;

/// How often the main thread checks for Ctrl-C while others work.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

thread_local! {
    /// A pool whose only member is the calling thread: one job, no thread to wake, and Python threads that each use one
    /// job do not wait for each other.
    static OWN_POOL: Option<ThreadPool> = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().ok();
}

/// Pools by process and size. A forked child has none of its parent's threads, so it makes its own.
fn shared_pool(n_threads: usize) -> std::result::Result<Arc<ThreadPool>, rayon::ThreadPoolBuildError> {
    static POOLS: OnceLock<Mutex<HashMap<(u32, usize), Arc<ThreadPool>>>> = OnceLock::new();
    let mut pools = POOLS.get_or_init(Mutex::default).lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let id = (std::process::id(), n_threads);
    if let Some(pool) = pools.get(&id) {
        return Ok(Arc::clone(pool));
    }
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(n_threads).build()?);
    pools.insert(id, Arc::clone(&pool));
    Ok(pool)
}

fn on_threads<T: Send>(n_threads: usize, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    if n_threads > 1 {
        let pool = shared_pool(n_threads).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        return Ok(pool.install(work));
    }
    OWN_POOL.with(|pool| {
        let pool = pool.as_ref().ok_or_else(|| PyRuntimeError::new_err("no thread to work on"))?;
        Ok(pool.install(work))
    })
}

/// Runs `work` without the interpreter's lock on `n_threads` threads.
pub(crate) fn run<T: Send>(py: Python<'_>, n_threads: usize, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(|| on_threads(n_threads, work))));
    match done {
        Ok(result) => result?.map_err(|error| errors::to_python(py, &error)),
        Err(payload) => Err(errors::from_panic(&*payload)),
    }
}

/// The worker's side of a long call: sends progress to the calling thread and learns whether to continue.
pub(crate) struct Watch<N> {
    cancelled: Arc<AtomicBool>,
    progress: Sender<Message<N>>,
}

/// A progress message to the calling thread.
enum Message<N> {
    /// The worker continues without waiting.
    Report(N),
    /// The worker waits for the reply.
    Checkpoint(N, Sender<()>),
}

impl<N> Watch<N> {
    /// Sends progress; breaks when the work should end.
    pub(crate) fn report(&self, progress: N) -> ControlFlow<()> {
        // A closed channel means the same as cancelled.
        self.proceed(self.progress.send(Message::Report(progress)).is_ok())
    }

    /// Sends progress and waits until it is handled: the last chance to cancel before a change that cannot be undone.
    pub(crate) fn report_and_wait(&self, progress: N) -> ControlFlow<()> {
        let (reply, answer) = channel();
        let is_sent = self.progress.send(Message::Checkpoint(progress, reply)).is_ok();
        self.proceed(is_sent && answer.recv().is_ok())
    }

    fn proceed(&self, is_received: bool) -> ControlFlow<()> {
        if is_received && !self.cancelled.load(Ordering::SeqCst) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

/// Runs long `work` on its own threads while the calling thread polls progress messages and signals.
///
/// An exception of `on_progress` or a signal cancels the work; it is raised once the work has ended.
fn run_watched<T: Send, N: Send>(
    py: Python<'_>,
    n_threads: usize,
    mut on_progress: impl FnMut(Python<'_>, N) -> PyResult<()>,
    work: impl FnOnce(Watch<N>) -> Result<T> + Send,
) -> PyResult<T> {
    let pool = ThreadPoolBuilder::new()
        .num_threads(n_threads.max(1))
        .build()
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let cancelled = Arc::new(AtomicBool::new(false));
    let (progress, received) = channel();
    // Only for the compiler: a receiver is not `Sync`, and the interpreter's lock is released while waiting.
    let received = Mutex::new(received);
    let watch = Watch { cancelled: Arc::clone(&cancelled), progress };
    let mut raised: Option<PyErr> = None;
    let done = std::thread::scope(|scope| {
        let worker = scope.spawn(|| catch_unwind(AssertUnwindSafe(|| pool.install(|| work(watch)))));
        loop {
            let message = py.detach(|| {
                received.lock().unwrap_or_else(std::sync::PoisonError::into_inner).recv_timeout(POLL_INTERVAL)
            });
            let (progress, reply) = match message {
                Ok(Message::Report(progress)) => (Some(progress), None),
                Ok(Message::Checkpoint(progress, reply)) => (Some(progress), Some(reply)),
                Err(RecvTimeoutError::Timeout) => (None, None),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if raised.is_none() {
                raised = progress.map_or_else(|| py.check_signals(), |progress| on_progress(py, progress)).err();
                cancelled.store(raised.is_some(), Ordering::SeqCst);
            }
            // A worker that no longer waits needs no reply.
            let _ = reply.map(|reply| reply.send(()));
        }
        py.detach(|| worker.join())
    });
    if let Some(error) = raised {
        return Err(error);
    }
    match done {
        Ok(Ok(result)) => result.map_err(|error: Error| errors::to_python(py, &error)),
        Ok(Err(payload)) | Err(payload) => Err(errors::from_panic(&*payload)),
    }
}

/// Runs `work` on other threads while the calling thread checks for Ctrl-C; `work` periodically checks whether to
/// continue.
pub(crate) fn run_interruptibly<T: Send>(
    py: Python<'_>,
    n_threads: usize,
    work: impl FnOnce(&dyn Fn() -> Result<()>) -> Result<T> + Send,
) -> PyResult<T> {
    run_watched(
        py,
        n_threads,
        |py, ()| py.check_signals(),
        |watch| {
            work(&|| match watch.report(()) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(()) => Err(Error::Cancelled),
            })
        },
    )
}

/// Options of a long call: on how many threads, and the progress callback (`None` for no callback).
#[derive(FromPyObject)]
pub(crate) struct Work<'py>(usize, Option<Bound<'py, PyAny>>);

impl Work<'_> {
    pub(crate) fn n_threads(&self) -> usize {
        self.0
    }

    pub(crate) fn has_callback(&self) -> bool {
        self.1.is_some()
    }

    /// Runs `work`, interruptible by Ctrl-C; the callback receives progress messages converted by `to_python`.
    pub(crate) fn run_reporting<T: Send, N: Send>(
        &self,
        py: Python<'_>,
        to_python: impl Fn(Python<'_>, N) -> PyResult<Py<PyAny>>,
        work: impl FnOnce(Watch<N>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let on_progress = |py: Python<'_>, progress: N| match &self.1 {
            None => py.check_signals(),
            Some(callback) => callback.call1((to_python(py, progress)?,)).map(drop),
        };
        run_watched(py, self.0, on_progress, work)
    }

    /// Runs `work` that reports the share done, from 0 to 1, interruptible by Ctrl-C.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(Progress<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let to_python = |py: Python<'_>, share: f64| Ok(share.into_pyobject(py)?.into_any().unbind());
        let (result, is_whole) = self.run_reporting(py, to_python, |watch| {
            let mut is_whole = false;
            let result = work(Progress::new(&mut |report| {
                is_whole = report.fraction >= 1.0;
                if is_whole { watch.report_and_wait(report.fraction) } else { watch.report(report.fraction) }
            }))?;
            Ok((result, is_whole))
        })?;
        if let (Some(callback), false) = (&self.1, is_whole) {
            callback.call1((1.0,))?;
        }
        Ok(result)
    }
}
