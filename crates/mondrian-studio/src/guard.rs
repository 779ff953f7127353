//! Access control: only requests from this machine, with the token, from the page itself.
//!
//! The token is the first part of every path, so that scripts, styles and downloads need it too. `Host` blocks foreign
//! names that resolve to this machine (DNS rebinding); `Origin` and `Sec-Fetch-Site` block other sites that guess the
//! port.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;

/// The content security policy: the page may only connect to this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The credentials of every request.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    token: String,
    /// `127.0.0.1:8123` and `localhost:8123`.
    hosts: [String; 2],
}

impl Guard {
    pub(crate) fn new(token: String, port: u16) -> Self {
        Self { token, hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")] }
    }

    /// The address that a browser opens.
    pub(crate) fn address(&self) -> String {
        format!("http://{}/{}/", self.hosts[0], self.token)
    }

    /// The request without its token, or why it is refused.
    pub(crate) fn admit(&self, mut request: Request) -> Result<Request, Box<Response<Body>>> {
        let refuse = |why: &'static str| Box::new((StatusCode::FORBIDDEN, why).into_response());
        if !self.is_own_host(request.headers()) {
            return Err(refuse("refused: this server answers to its own address only"));
        }
        if !self.is_own_origin(request.headers()) {
            return Err(refuse("refused: requests from other sites are not allowed"));
        }
        let path = request.uri().path();
        let mut parts = path.trim_start_matches('/').splitn(2, '/');
        if !same(parts.next().unwrap_or_default(), &self.token) {
            return Err(refuse("refused: open the address that mondrian studio printed, with its token"));
        }
        let Some(rest) = parts.next() else {
            // Relative addresses in the page need the slash.
            let place = format!("/{}/", self.token);
            let answer = (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, place)]).into_response();
            return Err(Box::new(answer));
        };
        let query = request.uri().query().map_or(String::new(), |q| format!("?{q}"));
        let Ok(inner) = PathAndQuery::try_from(format!("/{rest}{query}")) else {
            return Err(Box::new(StatusCode::BAD_REQUEST.into_response()));
        };
        *request.uri_mut() = Uri::from(inner);
        Ok(request)
    }

    fn is_own_host(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(header::HOST).iter();
        match (hosts.next().and_then(|h| h.to_str().ok()), hosts.next()) {
            (Some(host), None) => self.hosts.iter().any(|own| own == host),
            _ => false,
        }
    }

    fn is_own_origin(&self, headers: &HeaderMap) -> bool {
        let origin_fits = headers.get(header::ORIGIN).is_none_or(|origin| {
            let origin = origin.to_str().ok().and_then(|o| o.strip_prefix("http://"));
            self.hosts.iter().any(|own| Some(own.as_str()) == origin)
        });
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        origin_fits && matches!(site, None | Some(b"same-origin" | b"none"))
    }
}

/// Equality in time that does not depend on where two texts differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |bits, (a, b)| bits | (a ^ b)) == 0
}

/// Headers of every response.
pub(crate) fn harden(headers: &mut HeaderMap) {
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), microphone=(), geolocation=()"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// A token that cannot be guessed: 128 random bits.
///
/// # Errors
/// If the system has no random numbers.
pub(crate) fn token() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| std::io::Error::other(e.to_string()))?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(host: &str, origin: Option<&str>, path: &str) -> Result<String, u16> {
        let guard = Guard::new("secret".to_owned(), 80);
        let mut request = Request::builder().uri(path).header(header::HOST, host);
        if let Some(origin) = origin {
            request = request.header(header::ORIGIN, origin);
        }
        let admitted = guard.admit(request.body(Body::empty()).unwrap());
        admitted.map(|r| r.uri().to_string()).map_err(|r| r.status().as_u16())
    }

    #[test]
    fn only_the_own_page_is_let_in() {
        assert_eq!(checked("127.0.0.1:80", None, "/secret/api?x=1"), Ok("/api?x=1".to_owned()));
        assert_eq!(checked("localhost:80", Some("http://localhost:80"), "/secret/"), Ok("/".to_owned()));
        assert_eq!(checked("127.0.0.1:80", None, "/secret"), Err(308));
        for (host, origin, path) in [
            ("evil.example:80", None, "/secret/"),
            ("127.0.0.1", None, "/secret/"),
            ("127.0.0.1:80", Some("http://evil.example"), "/secret/"),
            ("127.0.0.1:80", Some("null"), "/secret/"),
            ("127.0.0.1:80", Some("https://127.0.0.1:80"), "/secret/"),
            ("127.0.0.1:80", None, "/"),
            ("127.0.0.1:80", None, "/Secret/"),
            ("127.0.0.1:80", None, "/secretly/"),
        ] {
            assert_eq!(checked(host, origin, path), Err(403), "{host} {origin:?} {path}");
        }
    }
}
