//! The server without a browser: who is let in, what is refused, and that nothing ends it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mondrian::{ForestParams, Points, RegressionParams};
use mondrian_studio::api::{
    Choice, ColumnInfo, Curve, FileInfo, InputInfo, Kind, Lines, ModelInfo, Problem, Recipe, State, Status, TableInfo,
    Task, View,
};
use mondrian_studio::tables::{Data, Encoder, ModelFile, Part, SavedModel, Table, Tables};
use mondrian_studio::{Options, Studio};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

/// Tables that behave as their name says.
struct Mock;

impl Tables for Mock {
    fn open(&self, path: &Path) -> Result<Box<dyn Table>, Problem> {
        let text = std::fs::read_to_string(path).map_err(|e| Problem::new(e.to_string()))?;
        assert!(!text.contains("panic on opening"), "asked to panic");
        if text.is_empty() {
            return Err(Problem::with_hint("the table is empty", "give one with rows"));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Box::new(MockTable { name, text }))
    }

    fn open_model(&self, path: &Path) -> Result<Option<ModelFile>, Problem> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if !text.starts_with("model") {
            return Ok(None);
        }
        assert!(!text.contains("panic"), "asked to panic");
        let choice = Choice { target: Some("y".to_owned()), ..Choice::default() };
        let mut data = MockTable { name: String::new(), text: String::new() }.prepare(&choice)?;
        data.held_out = Part::default();
        let points = Points::row_major(&data.train.x, 2).map_err(|e| Problem::new(e.to_string()))?;
        let forest = ForestParams { n_trees: 5, ..ForestParams::default() };
        let params = RegressionParams { forest, ..RegressionParams::default() };
        let forest = params.fit(points, &data.train.y).map_err(|e| Problem::new(e.to_string()))?;
        let info = FileInfo {
            name: "m".to_owned(),
            kind: Kind::Forest,
            target: Some("y".to_owned()),
            rows: 300,
            fitted_on: "t.csv".to_owned(),
            facts: Vec::new(),
        };
        let rows = Box::new(move |table: &Path| {
            let text = std::fs::read_to_string(table).unwrap_or_default();
            if text.contains("other columns") {
                return Err(Problem::new("there is no column \"a\""));
            }
            Ok(MockTable { name: String::new(), text }.prepare(&choice)?.held_out)
        });
        Ok(Some(ModelFile { info, seed: 0, model: SavedModel::Forest(Box::new(forest)), data, rows }))
    }

    fn tour(&self) -> (&'static str, &'static str) {
        ("tour.csv", "the tour")
    }

    fn stop(&self) {}
}

struct MockTable {
    name: String,
    text: String,
}

impl Table for MockTable {
    fn describe(&self) -> Result<TableInfo, Problem> {
        let columns = vec![ColumnInfo { name: "x".to_owned(), ..ColumnInfo::default() }];
        Ok(TableInfo { name: self.name.clone(), format: "mock".to_owned(), rows: 400, columns })
    }

    fn prepare(&self, choice: &Choice) -> Result<Data, Problem> {
        assert!(!self.text.contains("panic on preparing"), "asked to panic");
        let part = |n: usize, from: u64| {
            let x: Vec<f64> = (0..2 * n).map(|i| (i as f64 * 0.37 + from as f64).sin()).collect();
            let y = x.chunks(2).map(|row| 2.0 * row[0] - row[1]).collect();
            Part { x, y, rows: (0..n as u64).map(|i| from + i).collect() }
        };
        let train = part(300, 1);
        let mut held_out = part(100, 301);
        if self.text.contains("panic in a fit") {
            // Rows that are not there: the view of the fitted model reads past the end.
            held_out.rows.extend(0..500);
        }
        Ok(Data {
            features: vec!["a".to_owned(), "b".to_owned()],
            axes: vec![0, 1],
            inputs: vec![InputInfo { name: "a".to_owned(), min: -1.0, max: 1.0, median: 0.0, levels: None }],
            target: choice.target.clone(),
            task: choice.target.as_ref().map(|_| Task::Regression),
            classes: None,
            lower: vec![-1.0; 2],
            upper: vec![1.0; 2],
            middle: Data::medians(&train.x, 2),
            train,
            held_out,
            encoder: Arc::new(Plain),
        })
    }

    fn model_file(&self, _: &Choice, _: &Recipe) -> Result<Vec<u8>, Problem> {
        Ok(b"a model".to_vec())
    }

    fn report(&self, _: &Choice, _: &Recipe) -> Result<Vec<u8>, Problem> {
        Err(Problem::new("no report here"))
    }

    fn lines(&self, choice: &Choice, recipe: &Recipe) -> Lines {
        let command = format!("mondrian fit --target={}", choice.target.as_deref().unwrap_or_default());
        Lines { command, python: format!("{:?}", recipe.lifetimes) }
    }
}

struct Plain;

impl Encoder for Plain {
    fn encode(&self, cells: &Map<String, Value>) -> Result<Vec<f64>, Problem> {
        assert!(!cells.contains_key("panic"), "asked to panic");
        Ok(["a", "b"].map(|name| cells.get(name).and_then(Value::as_f64).unwrap_or(0.0)).to_vec())
    }

    fn cells(&self, x: &[f64]) -> Vec<f64> {
        x.to_vec()
    }

    fn codes(&self) -> Vec<bool> {
        vec![false; 2]
    }

    fn in_units(&self, _: usize, scaled: f64) -> Option<f64> {
        Some(scaled)
    }
}

/// A running studio; it ends with this.
struct Running {
    address: String,
    end: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    fn start(options: Options) -> Self {
        let (said, heard) = std::sync::mpsc::channel();
        let (end, ended) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let Ok(studio) = Studio::start(Arc::new(Mock), &options).await else { panic!("it does not start") };
                said.send(studio.address()).unwrap();
                studio.serve(async { ended.await.unwrap_or_default() }).await.unwrap();
            });
            runtime.shutdown_timeout(Duration::from_secs(5));
        });
        let address = heard.recv_timeout(Duration::from_secs(20)).unwrap();
        Self { address, end: Some(end), thread: Some(thread) }
    }

    fn host(&self) -> &str {
        self.address.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap()
    }

    fn token(&self) -> &str {
        self.address.trim_end_matches('/').rsplit('/').next().unwrap()
    }

    /// A request as it is: status, headers, body.
    fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String, Vec<u8>) {
        let mut stream = TcpStream::connect(self.host()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        // A refused upload is answered before it is read.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let split = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(answer.len().saturating_sub(4));
        let head = String::from_utf8_lossy(&answer[..split]).into_owned();
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        (status, head, answer[(split + 4).min(answer.len())..].to_vec())
    }

    /// A request of the page.
    fn ask(&self, method: &str, name: &str, body: &[u8]) -> (u16, Value) {
        let path = format!("/{}/api/v1/{name}", self.token());
        let headers = [("host", self.host()), ("content-type", "application/json")];
        let (status, head, body) = self.raw(method, &path, &headers, body);
        let body = if head.to_lowercase().contains("transfer-encoding: chunked") { unchunked(&body) } else { body };
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    fn post(&self, name: &str, body: &Value) -> (u16, Value) {
        self.ask("POST", name, body.to_string().as_bytes())
    }

    fn open(&self, text: &str) -> (u16, Value) {
        self.ask("POST", "table?name=t.csv", text.as_bytes())
    }

    fn state(&self) -> State {
        serde_json::from_value(self.ask("GET", "state", b"").1).unwrap()
    }

    fn fit(&self, request: &Value) -> ModelInfo {
        serde_json::from_value(self.post("models", request).1).unwrap()
    }

    fn until_done(&self, id: u64) -> ModelInfo {
        let started = Instant::now();
        loop {
            let model = self.state().models.into_iter().find(|m| m.id == id).unwrap();
            if model.status != Status::Running {
                return model;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "{model:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end.take().map(|end| end.send(()));
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

fn unchunked(body: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), body);
    while let Some(end) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = usize::from_str_radix(String::from_utf8_lossy(&rest[..end]).trim(), 16).unwrap_or(0);
        if size == 0 || rest.len() < end + 2 + size {
            break;
        }
        out.extend_from_slice(&rest[end + 2..][..size]);
        rest = &rest[(end + 4 + size).min(rest.len())..];
    }
    out
}

#[test]
fn strangers_are_refused() {
    let studio = Running::start(Options::default());
    let (host, token) = (studio.host().to_owned(), studio.token().to_owned());
    assert_eq!(token.len(), 32);
    let port = host.rsplit(':').next().unwrap();
    let own = format!("/{token}/");
    let state = format!("/{token}/api/v1/state");
    assert_eq!(studio.raw("GET", &own, &[("host", &host)], b"").0, 200);
    assert_eq!(studio.raw("GET", &state, &[("host", &format!("localhost:{port}"))], b"").0, 200);
    assert_eq!(studio.raw("GET", &own, &[("host", &host), ("origin", &format!("http://{host}"))], b"").0, 200);
    let own_host = ("host", host.as_str());
    let refused = [
        ("no token", "/", vec![own_host]),
        ("the interface without a token", "/api/v1/state", vec![own_host]),
        ("a wrong token", "/00000000000000000000000000000000/", vec![own_host]),
        ("a foreign host", own.as_str(), vec![("host", "evil.example")]),
        ("two hosts", own.as_str(), vec![own_host, ("host", "evil.example")]),
        ("a foreign origin", state.as_str(), vec![own_host, ("origin", "http://evil.example")]),
        ("an origin without a name", state.as_str(), vec![own_host, ("origin", "null")]),
        ("another site", state.as_str(), vec![own_host, ("sec-fetch-site", "cross-site")]),
    ];
    for (what, path, headers) in refused {
        let status = studio.raw("GET", path, &headers, b"").0;
        assert!(status == 403 || status == 400, "{what}: {status}");
    }
    let (_, head, _) = studio.raw("GET", &own, &[("host", &host)], b"");
    for header in
        ["content-security-policy: default-src 'none'", "x-frame-options: DENY", "referrer-policy: no-referrer"]
    {
        assert!(head.contains(header), "{header} in {head}");
    }
    for path in ["../Cargo.toml", "..%2f..%2fetc/passwd", "static/app.js", "vendor/"] {
        assert_ne!(studio.raw("GET", &format!("/{token}/{path}"), &[("host", &host)], b"").0, 200, "{path}");
    }
}

#[test]
fn every_asset_that_the_page_names_is_there() {
    let studio = Running::start(Options::default());
    let host = studio.host().to_owned();
    for name in
        ["app.js", "charts.js", "dom.js", "models.js", "plane.js", "row.js", "stream.js", "table.js", "studio.css"]
    {
        let (status, head, _) = studio.raw("GET", &format!("/{}/{name}", studio.token()), &[("host", &host)], b"");
        assert_eq!(status, 200, "{name}");
        assert!(head.contains("nosniff") && head.contains(if name.ends_with("js") { "javascript" } else { "css" }));
    }
}

#[test]
fn bad_requests_and_panics_are_messages() {
    let studio = Running::start(Options { max_upload: 10_000, ..Options::default() });
    assert_eq!(studio.post("choice", &json!({})).0, 400, "no table yet");
    assert_eq!(studio.open("").0, 400);
    let (status, answer) = studio.open(&"x".repeat(20_000));
    assert_eq!(status, 413, "{answer}");
    let (status, answer) = studio.open("panic on opening");
    assert_eq!(status, 500);
    assert!(answer["error"]["message"].as_str().unwrap().contains("internal error"), "{answer}");
    assert_eq!(studio.open("panic on preparing").0, 200);
    assert_eq!(studio.post("choice", &json!({ "target": "y" })).0, 500);
    assert_eq!(studio.open("panic in a fit").0, 200);
    assert_eq!(studio.post("choice", &json!({ "target": "y" })).0, 200);
    let id = studio.fit(&json!({ "kind": "forest", "trees": 2 })).id;
    let failed = studio.until_done(id);
    assert_eq!(failed.status, Status::Failed);
    assert!(failed.problem.unwrap().message.contains("internal error"), "rows that are not there");
    assert_eq!(studio.open("fine").0, 200, "the server goes on");
    for (name, body) in [
        ("choice", json!({ "target": "y", "path": "/etc/passwd" })),
        ("models", json!({ "kind": "oracle" })),
        ("models", json!({})),
        ("take/model", json!({ "kind": "forest" })),
    ] {
        let status = studio.post(name, &body).0;
        assert!((400..500).contains(&status), "{name} {body}: {status}");
    }
    assert_eq!(studio.ask("GET", "models/7/curve", b"").0, 400);
    assert_eq!(studio.ask("GET", "nothing", b"").0, 404);
}

#[test]
fn a_model_is_fitted_once_and_seen_at_every_lifetime() {
    let studio = Running::start(Options::default());
    studio.open("fine");
    assert_eq!(studio.post("choice", &json!({ "target": "y" })).0, 200);
    let id = studio.fit(&json!({ "kind": "forest", "trees": 10 })).id;
    let done = studio.until_done(id);
    assert_eq!(done.status, Status::Ready, "{:?}", done.problem);
    let curve = studio.ask("GET", &format!("models/{id}/curve"), b"").1;
    let lifetimes: Vec<f64> = serde_json::from_value(curve["lifetimes"].clone()).unwrap();
    let held_out: Vec<f64> = serde_json::from_value(curve["held_out"].clone()).unwrap();
    for at in [0, lifetimes.len() / 3, lifetimes.len() / 2, lifetimes.len() - 1] {
        let name = format!("models/{id}/view?lifetime={}&x=0&y=1", lifetimes[at]);
        let view: View = serde_json::from_value(studio.ask("GET", &name, b"").1).unwrap();
        // The path's value, exactly; the predictions of all 100 held-out rows give it too, up to rounding.
        assert_eq!(view.score.rmse, Some(held_out[at]));
        assert_eq!(view.surface.map(|s| s.values.len()), Some(576));
        assert_eq!(view.predicted.len(), 100);
        let squares: f64 =
            view.predicted.iter().zip(&studio.state().data.unwrap().observed).map(|(p, y)| (p - y).powi(2)).sum();
        assert!(((squares / 100.0).sqrt() / held_out[at] - 1.0).abs() < 1e-9, "at {}", lifetimes[at]);
    }
    // Deviations of moves, once they are found: at the lifetimes where they are kept, those of a slider at rest.
    let (from, to) = (curve["from"].as_f64().unwrap(), curve["to"].as_f64().unwrap());
    for step in [0, 12, 24] {
        let lifetime = from * (to / from).powf(f64::from(step) / 24.0);
        let std = |settled: bool| -> Vec<f64> {
            let name = format!("models/{id}/view?lifetime={lifetime}&settled={settled}");
            serde_json::from_value(studio.ask("GET", &name, b"").1["std"].clone()).unwrap()
        };
        let moving = (0..600).find_map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            Some(std(false)).filter(|std| !std.is_empty())
        });
        let (moving, rest) = (moving.expect("deviations are found within half a minute"), std(true));
        assert_eq!((moving.len(), rest.len()), (100, 100));
        assert!(moving.iter().zip(&rest).all(|(a, b)| (a / b - 1.0).abs() < 1e-9), "at {lifetime}");
    }
    let row = studio.post(&format!("models/{id}/row"), &json!({ "cells": { "a": 0.3, "b": -0.2 } })).1;
    let mean = row["mean"].as_f64().unwrap();
    assert!((mean - 0.8).abs() < 0.5, "{row}");
    assert!(row["neighbours"].as_array().is_some_and(|n| !n.is_empty()));
    assert_eq!(studio.post(&format!("models/{id}/row"), &json!({ "cells": { "panic": 1 } })).0, 500);
    for bad in ["lifetime=-1", "lifetime=x", "x=0&y=0", "x=0&y=9"] {
        assert_eq!(studio.ask("GET", &format!("models/{id}/view?{bad}"), b"").0, 400, "{bad}");
    }
    let take = json!({ "kind": "forest", "lifetime": 1.5, "trees": null, "seed": 0 });
    assert_eq!(studio.post("take/lines", &take).1["command"], "mondrian fit --target=y");
    assert_eq!(studio.post("take/report", &take).0, 400);
}

#[test]
fn a_model_file_is_shown_alone_and_judged_by_a_table() {
    let studio = Running::start(Options::default());
    let send = |name: &str, text: &str| studio.ask("POST", &format!("file?name={name}"), text.as_bytes());
    let (status, opened) = send("m.mondrian", "model");
    assert_eq!((status, &opened["file"]["name"], &opened["table"]), (200, &json!("m"), &Value::Null));
    let shown = || {
        let model = studio.state().models[0].clone();
        assert_eq!(studio.until_done(model.id).status, Status::Ready);
        let curve: Curve =
            serde_json::from_value(studio.ask("GET", &format!("models/{}/curve", model.id), b"").1).unwrap();
        let name = format!("models/{}/view?x=0&y=1&lifetime={}", model.id, curve.to);
        (model, curve, serde_json::from_value::<View>(studio.ask("GET", &name, b"").1).unwrap())
    };
    let (model, curve, view) = shown();
    assert_eq!(model.file.as_deref(), Some("m"));
    assert!(curve.held_out.is_empty() && !curve.train.is_empty(), "its own rows alone");
    assert!(view.predicted.is_empty() && view.score.rmse.is_none() && view.surface.is_some());
    let row = studio.post(&format!("models/{}/row", model.id), &json!({ "cells": { "a": 0.3, "b": -0.2 } })).1;
    assert_eq!(row["neighbours"].as_array().map(Vec::len), Some(12), "a forest holds its rows");
    for (name, body) in [("models", json!({ "kind": "forest" })), ("stream/play", json!({}))] {
        assert_eq!(studio.post(name, &body).0, 400, "{name}: there is no table");
    }
    assert_eq!(send("t.csv", "other columns").0, 400);
    assert_eq!(studio.state().models.len(), 1, "a table that does not fit changes nothing");
    assert_eq!(send("t.csv", "fine").0, 200);
    let (judged, curve, view) = shown();
    assert_eq!((curve.held_out.len(), view.predicted.len()), (curve.train.len(), 100));
    assert!(view.score.rmse.is_some_and(|rmse| rmse < 1.0));
    assert_eq!(send("m.mondrian", "model, panic").0, 500);
    assert_eq!(studio.ask("DELETE", &format!("models/{}", judged.id), b"").0, 200);
    let state = studio.state();
    assert!(state.file.is_none() && state.data.is_none() && state.table.is_some(), "the table stays");
    assert_eq!(studio.post("choice", &json!({ "target": "y" })).0, 200);
    let moved = json!({ "kind": "laplace", "lifetime": null, "lifetimes": [1.0, 2.0], "trees": null, "seed": 0 });
    let lines = studio.post("take/lines", &moved).1;
    // In the table's units: over the inputs' deviations, which are near 0.7.
    assert!(lines["python"].as_str().is_some_and(|text| text.starts_with("Some([1.4")), "{lines}");
}

#[test]
fn two_clients_share_a_session_and_one_cancels_what_the_other_started() {
    let studio = Running::start(Options::default());
    studio.open("fine");
    studio.post("choice", &json!({ "target": "y" }));
    // Another tab listens.
    let mut listener = TcpStream::connect(studio.host()).unwrap();
    listener.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = format!("GET /{}/api/v1/events HTTP/1.1\r\nhost: {}\r\n\r\n", studio.token(), studio.host());
    listener.write_all(head.as_bytes()).unwrap();
    let id = studio.fit(&json!({ "kind": "forest", "trees": 10000 })).id;
    assert_eq!(studio.state().models.len(), 1);
    assert_eq!(studio.post(&format!("models/{id}/cancel"), &json!({})).0, 200);
    assert_eq!(studio.until_done(id).status, Status::Cancelled);
    let mut heard = String::new();
    let mut buffer = [0; 4096];
    while !heard.contains("\"status\":\"cancelled\"") {
        let n = listener.read(&mut buffer).unwrap();
        assert!(n > 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
    assert!(heard.contains("event: state") && heard.contains("event: model"));
    assert_eq!(studio.ask("DELETE", &format!("models/{id}"), b"").0, 200);
    assert!(studio.state().models.is_empty());
    for _ in 0..12 {
        studio.fit(&json!({ "kind": "grid", "trees": 2, "lifetimes": [1.0, 1.0] }));
    }
    assert_eq!(studio.post("models", &json!({ "kind": "forest" })).0, 400, "the thirteenth");
}

#[test]
fn rows_stream_and_are_forgotten() {
    let studio = Running::start(Options::default());
    studio.open("fine");
    assert_eq!(studio.post("stream/play", &json!({})).0, 400, "no columns chosen yet");
    studio.post("choice", &json!({ "target": "y" }));
    assert_eq!(studio.post("stream/forget", &json!({ "position": 0 })).0, 400, "nothing is playing");
    assert_eq!(studio.post("stream/play", &json!({})).0, 200);
    let started = Instant::now();
    let info = loop {
        std::thread::sleep(Duration::from_millis(50));
        let info = studio.post("stream/pause", &json!({})).1;
        if info["seen"].as_u64().unwrap() >= 5 {
            break info;
        }
        studio.post("stream/play", &json!({}));
        assert!(started.elapsed() < Duration::from_secs(30));
    };
    assert_eq!(info["of"], 300);
    assert_eq!(studio.post("stream/forget", &json!({ "position": 2 })).1["forgotten"], json!([2]));
    assert_eq!(studio.post("stream/forget", &json!({ "position": 2 })).0, 400, "once is enough");
    assert_eq!(studio.post("stream/forget", &json!({ "position": 299 })).0, 400, "not learned yet");
}

#[test]
fn temporary_files_go_with_the_server() {
    let studio = Running::start(Options::default());
    studio.open("fine");
    let own = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("mondrian-studio-");
    let there = || -> Vec<_> {
        let all = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
        all.filter(|e| own(&e.file_name())).map(|e| e.path()).filter(|p| contains_table(p)).collect()
    };
    studio.open("fine for this test alone");
    assert_eq!(there().len(), 1, "the upload is stored");
    drop(studio);
    assert!(there().is_empty(), "and removed");
}

fn contains_table(folder: &Path) -> bool {
    let inner = std::fs::read_dir(folder).into_iter().flatten().flatten();
    inner
        .flat_map(|e| std::fs::read_dir(e.path()).into_iter().flatten().flatten())
        .any(|f| std::fs::read_to_string(f.path()).is_ok_and(|text| text == "fine for this test alone"))
}
