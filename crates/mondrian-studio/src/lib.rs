//! The studio: a local page for interactive work with models, with a slider for the lifetime.
//!
//! A server on this machine has one session (a table, its rows, models fitted to them); the page requests views at a
//! lifetime, which are computed from `at(λ)` and the path: nothing is refitted while the slider moves. Tables are read
//! by the program, through [`tables::Tables`]; all calls into the library are in `engine`.

pub mod api;
mod assets;
mod engine;
mod guard;
mod server;
mod session;
pub mod tables;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tower::{ServiceExt, service_fn};

use api::Problem;
use guard::Guard;
use session::Session;
use tables::Tables;

/// Default of the largest upload in bytes.
pub const MAX_UPLOAD: u64 = 2_000_000_000;

/// Options of the studio.
#[derive(Debug, Clone)]
pub struct Options {
    /// The port; 0 for any free port.
    pub port: u16,
    /// Files of this machine to open at the start: a table, a model, or a model and a table to evaluate it on.
    pub files: Vec<PathBuf>,
    /// Bytes of an upload at most.
    pub max_upload: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { port: 0, files: Vec::new(), max_upload: MAX_UPLOAD }
    }
}

/// Why the studio could not start.
#[derive(Debug)]
pub enum Failure {
    /// A file that was named cannot be opened.
    File(Problem),
    /// The server cannot be started.
    Server(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Server(error)
    }
}

/// A server that is bound to its port.
pub struct Studio {
    listener: TcpListener,
    guard: Guard,
    session: Arc<Session>,
}

impl Studio {
    /// Binds the port on the loopback address and opens the files that were named.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn start(tables: Arc<dyn Tables>, options: &Options) -> Result<Self, Failure> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, options.port))).await?;
        let guard = Guard::new(guard::token()?, listener.local_addr()?.port());
        let session = Arc::new(Session::new(tables, options.max_upload)?);
        for path in &options.files {
            session.open(path).map_err(Failure::File)?;
        }
        Ok(Self { listener, guard, session })
    }

    /// The address to open, token included.
    pub fn address(&self) -> String {
        self.guard.address()
    }

    /// Serves requests until `end` completes; then all fits are cancelled and temporary files are removed.
    ///
    /// # Errors
    /// If the port is lost.
    pub async fn serve(self, end: impl Future<Output = ()>) -> io::Result<()> {
        let Self { listener, guard, session } = self;
        let routes = server::routes(Arc::clone(&session));
        let app = service_fn(move |request: Request| {
            let (guard, routes) = (guard.clone(), routes.clone());
            async move { Ok::<_, std::convert::Infallible>(answer(&guard, routes, request).await) }
        });
        let listener = listener.tap_io(|stream| {
            // Small responses at every move of the slider must be sent without delay.
            let _ = stream.set_nodelay(true);
        });
        let served = axum::serve(listener, tower::make::Shared::new(app));
        let outcome = tokio::select! {
            outcome = served => outcome,
            () = end => Ok(()),
        };
        session.stop();
        outcome
    }
}

async fn answer(guard: &Guard, routes: axum::Router, request: Request) -> Response<Body> {
    let mut response = match guard.admit(request) {
        Ok(request) => match routes.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        },
        Err(refusal) => *refusal,
    };
    guard::harden(response.headers_mut());
    response
}

/// Runs a studio until Ctrl-C. `ready` is given the address.
///
/// # Errors
/// [`Failure`].
pub fn run(tables: Arc<dyn Tables>, options: &Options, ready: impl FnOnce(&str)) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(async {
        let studio = Studio::start(tables, options).await?;
        ready(&studio.address());
        Ok(studio.serve(ended()).await?)
    });
    // A fit checks for cancellation between steps; the process waits at most this long for it.
    runtime.shutdown_timeout(Duration::from_secs(2));
    outcome
}

/// Ctrl-C or a termination signal.
async fn ended() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = interrupt.await;
}
