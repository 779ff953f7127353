//! The files of the page, embedded in the program: nothing is read from disk or the network.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

macro_rules! assets {
    ($($path:literal: $kind:expr),* $(,)?) => {
        [$(($path, $kind, include_str!(concat!("../static/", $path)))),*]
    };
}

/// Path, kind and text.
const ASSETS: [(&str, &str, &str); 13] = assets![
    "index.html": HTML,
    "studio.css": CSS,
    "app.js": SCRIPT,
    "charts.js": SCRIPT,
    "dom.js": SCRIPT,
    "models.js": SCRIPT,
    "plane.js": SCRIPT,
    "row.js": SCRIPT,
    "stream.js": SCRIPT,
    "table.js": SCRIPT,
    "vendor/uplot.js": SCRIPT,
    "vendor/uplot.css": CSS,
    "vendor/uplot-LICENSE": TEXT,
];

/// The file at a path; `/` is the page.
pub(crate) fn serve(path: &str) -> Response {
    let path = match path.trim_start_matches('/') {
        "" => "index.html",
        path => path,
    };
    match ASSETS.iter().find(|(name, ..)| *name == path) {
        Some((_, kind, text)) => ([(header::CONTENT_TYPE, *kind)], *text).into_response(),
        None => (StatusCode::NOT_FOUND, "there is no such page").into_response(),
    }
}
