//! The requests: JSON in and out, one function each. `docs/studio.md` describes them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use futures_util::stream::{self, Stream, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::sync::broadcast::error::RecvError;

use crate::api::{
    Choice, Curve, DataInfo, FitRequest, Inputs, Lines, ModelInfo, Opened, Plane, PlaneRequest, Problem, Recipe,
    RowAnswer, RowRequest, State as WholeState, StreamInfo, TableInfo, View,
};
use crate::session::{Event, Session, Slot, guarded};
use crate::{assets, engine, tables};

/// Bytes of a JSON request at most.
const MAX_JSON: usize = 1 << 20;

type Shared = State<Arc<Session>>;
type Answer<T> = Result<Json<T>, Refusal>;

/// A problem as a response.
pub(crate) struct Refusal(StatusCode, Problem);

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        let own = problem.message.starts_with("internal error");
        Self(if own { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::BAD_REQUEST }, problem)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": self.1 }))).into_response()
    }
}

/// All requests, without the guard.
pub(crate) fn routes(session: Arc<Session>) -> Router {
    let api = Router::new()
        .route("/state", get(state))
        .route("/events", get(events))
        .route("/file", post(upload).layer(DefaultBodyLimit::disable()))
        .route("/table", post(upload_table).layer(DefaultBodyLimit::disable()))
        .route("/tour", post(tour))
        .route("/choice", post(choose))
        .route("/models", post(fit))
        .route("/models/{id}", delete(remove))
        .route("/models/{id}/cancel", post(cancel))
        .route("/models/{id}/curve", get(curve))
        .route("/models/{id}/plane", get(plane))
        .route("/models/{id}/view", get(view))
        .route("/models/{id}/row", post(row))
        .route("/models/{id}/inputs", get(inputs))
        .route("/take/lines", post(take_lines))
        .route("/take/model", post(take_model))
        .route("/take/report", post(take_report))
        .route("/stream/plane", get(stream_plane))
        .route("/stream/play", post(play))
        .route("/stream/pause", post(pause))
        .route("/stream/forget", post(forget))
        .layer(DefaultBodyLimit::max(MAX_JSON))
        .fallback(unknown)
        .with_state(session);
    Router::new().nest("/api/v1", api).fallback(|request: Request| async move { assets::serve(request.uri().path()) })
}

async fn unknown() -> Refusal {
    Refusal(StatusCode::NOT_FOUND, Problem::with_hint("there is no such request", "see docs/studio.md"))
}

/// Runs work of the library on a blocking thread; a panic becomes an error message.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Problem> + Send + 'static) -> Result<T, Refusal> {
    match tokio::task::spawn_blocking(move || guarded(work)).await {
        Ok(outcome) => Ok(outcome?),
        Err(_) => Err(Problem::new("the server is going away").into()),
    }
}

async fn state(State(session): Shared) -> Json<WholeState> {
    Json(session.state())
}

/// Server-sent events: `state` (fetch it again), `model` and `stream` with what changed.
async fn events(State(session): Shared) -> Sse<impl Stream<Item = Result<Sent, Infallible>>> {
    let events = stream::unfold(session.listen(), |mut listener| async move {
        let event = match listener.recv().await {
            Ok(Event::Model(info)) => sent("model", &*info),
            Ok(Event::Stream(info)) => sent("stream", &*info),
            // A page that lagged behind fetches the whole state again.
            Ok(Event::State) | Err(RecvError::Lagged(_)) => sent("state", &()),
            Err(RecvError::Closed) => return None,
        };
        Some((Ok(event), listener))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
}

fn sent<T: Serialize>(name: &str, data: &T) -> Sent {
    let text = serde_json::to_string(data).unwrap_or_default();
    Sent::default().event(name).data(text)
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// A table or a model, streamed to a file named by the server.
async fn upload(State(session): Shared, Query(Named { name }): Query<Named>, body: Body) -> Answer<Opened> {
    let too_large = || {
        let message = format!("the file is larger than {} MB", session.max_upload / 1_000_000);
        Refusal(StatusCode::PAYLOAD_TOO_LARGE, Problem::with_hint(message, "open it from the command line instead"))
    };
    let failed = |e: std::io::Error| Refusal::from(Problem::new(format!("the upload cannot be stored: {e}")));
    let place = session.upload_place(&name)?;
    let mut file = tokio::fs::File::create(&place).await.map_err(failed)?;
    let mut chunks = body.into_data_stream();
    let mut n_bytes = 0;
    let stored: Result<(), Refusal> = loop {
        match chunks.next().await {
            None => break file.flush().await.map_err(failed),
            Some(Err(_)) => break Err(Problem::with_hint("the upload was broken off", "send it again").into()),
            Some(Ok(chunk)) => {
                n_bytes += chunk.len() as u64;
                if n_bytes > session.max_upload {
                    break Err(too_large());
                }
                if let Err(e) = file.write_all(&chunk).await {
                    break Err(failed(e));
                }
            }
        }
    };
    drop(file);
    if let Err(refusal) = stored {
        if let Some(folder) = place.parent() {
            let _ = tokio::fs::remove_dir_all(folder).await;
        }
        return Err(refusal);
    }
    Ok(Json(blocking(move || session.open_upload(&place)).await?))
}

/// The same, where a table is expected.
async fn upload_table(state: Shared, name: Query<Named>, body: Body) -> Answer<TableInfo> {
    let Json(opened) = upload(state, name, body).await?;
    let none = || Problem::with_hint("the file is a model and no table is open besides", "see the request file");
    Ok(Json(opened.table.ok_or_else(none)?))
}

async fn tour(State(session): Shared) -> Answer<TableInfo> {
    Ok(Json(blocking(move || session.open_tour()).await?))
}

async fn choose(State(session): Shared, Json(choice): Json<Choice>) -> Answer<DataInfo> {
    Ok(Json(blocking(move || session.choose(&choice)).await?))
}

async fn fit(State(session): Shared, Json(request): Json<FitRequest>) -> Answer<ModelInfo> {
    Ok(Json(session.fit(request)?))
}

async fn cancel(State(session): Shared, Path(id): Path<u64>) -> Answer<()> {
    Ok(Json(session.cancel(id)?))
}

async fn remove(State(session): Shared, Path(id): Path<u64>) -> Answer<()> {
    Ok(Json(session.remove(id)?))
}

/// Runs a query on a ready model.
async fn query_model<T: Send + 'static>(
    session: Arc<Session>,
    id: u64,
    query: impl FnOnce(&Slot) -> Result<T, Problem> + Send + 'static,
) -> Answer<T> {
    let slot = session.slot(id)?;
    Ok(Json(blocking(move || query(&slot)).await?))
}

async fn curve(State(session): Shared, Path(id): Path<u64>) -> Answer<Option<Curve>> {
    query_model(session, id, |slot| Ok(slot.ready()?.curve())).await
}

async fn plane(State(session): Shared, Path(id): Path<u64>, Query(plane): Query<PlaneRequest>) -> Answer<Plane> {
    query_model(session, id, move |slot| slot.ready()?.plane(&slot.prepared.data, plane)).await
}

/// The requested view.
#[derive(Deserialize)]
struct ViewQuery {
    lifetime: Option<f64>,
    x: Option<usize>,
    y: Option<usize>,
    #[serde(default)]
    settled: bool,
}

async fn view(State(session): Shared, Path(id): Path<u64>, Query(query): Query<ViewQuery>) -> Answer<View> {
    let plane = query.x.zip(query.y).map(|(x, y)| PlaneRequest { x, y, tree: 0 });
    query_model(session, id, move |slot| slot.ready()?.view(&slot.prepared.data, query.lifetime, plane, query.settled))
        .await
}

async fn row(State(session): Shared, Path(id): Path<u64>, Json(request): Json<RowRequest>) -> Answer<RowAnswer> {
    query_model(session, id, move |slot| slot.ready()?.row(&slot.prepared.data, &request)).await
}

async fn inputs(State(session): Shared, Path(id): Path<u64>) -> Answer<Inputs> {
    query_model(session, id, |slot| slot.ready()?.inputs(&slot.prepared.data, &|| slot.is_cancelled())).await
}

/// Runs work with the current table and choice.
async fn with_table<T: Send + 'static>(
    session: Arc<Session>,
    recipe: Recipe,
    work: impl FnOnce(&dyn tables::Table, &Choice, &Recipe) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Refusal> {
    let (opened, prepared) = (session.table()?, session.prepared()?);
    let recipe = prepared.data.in_units_of(recipe);
    blocking(move || work(opened.table.as_ref(), &prepared.info.choice, &recipe)).await
}

async fn take_lines(State(session): Shared, Json(recipe): Json<Recipe>) -> Answer<Lines> {
    Ok(Json(with_table(session, recipe, |table, choice, recipe| Ok(table.lines(choice, recipe))).await?))
}

async fn take_model(State(session): Shared, Json(recipe): Json<Recipe>) -> Result<Response, Refusal> {
    let bytes = with_table(session, recipe, |table, choice, recipe| table.model_file(choice, recipe)).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

async fn take_report(State(session): Shared, Json(recipe): Json<Recipe>) -> Result<Response, Refusal> {
    let page = with_table(session, recipe, |table, choice, recipe| table.report(choice, recipe)).await?;
    // Bytes to download: if they were shown in the page, its policy would block their scripts.
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], page).into_response())
}

/// The tree of the stream, for its picture.
async fn stream_plane(State(session): Shared, Query(plane): Query<PlaneRequest>) -> Answer<Plane> {
    let prepared = session.prepared()?;
    Ok(Json(blocking(move || engine::plane_of_stream(&prepared.data, plane)).await?))
}

#[derive(Deserialize)]
struct PlayRequest {
    #[serde(default)]
    restart: bool,
}

async fn play(State(session): Shared, Json(request): Json<PlayRequest>) -> Answer<StreamInfo> {
    Ok(Json(session.play(request.restart)?))
}

async fn pause(State(session): Shared) -> Answer<StreamInfo> {
    Ok(Json(session.pause()?))
}

#[derive(Deserialize)]
struct ForgetRequest {
    position: usize,
}

async fn forget(State(session): Shared, Json(request): Json<ForgetRequest>) -> Answer<StreamInfo> {
    Ok(Json(blocking(move || session.forget(request.position)).await?))
}
