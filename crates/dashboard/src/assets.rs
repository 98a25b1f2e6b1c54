//! The app, compiled in from `ui/dist`.

use std::{collections::HashMap, io::Write as _};

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{
        ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
        ETAG, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
    },
};
use rust_embed::RustEmbed;

use crate::{BasePath, Error};

/// The dashboard's page.
const INDEX: &str = "index.html";

/// The page of the demo's guide.
const GUIDE: &str = "guide.html";

/// What a page says of where it is.
const BASE: &str = "<base href=\"/\">";

#[derive(RustEmbed)]
#[folder = "../../ui/dist"]
struct Dist;

/// Every file of the app, ready to be sent.
#[derive(Debug)]
pub struct Assets {
    files: HashMap<String, File>,
    page: &'static str,
    policy: HeaderValue,
}

#[derive(Debug)]
struct File {
    plain: Bytes,
    gzip: Option<Bytes>,
    content_type: HeaderValue,
    cache: HeaderValue,
    tag: HeaderValue,
}

impl Assets {
    /// For a dashboard under this path; frames may come from Grafana alone.
    pub(crate) fn dashboard(base: &BasePath, grafana_url: Option<&str>) -> Result<Self, Error> {
        Self::new(INDEX, base, grafana_url)
    }

    /// For the demo's guide.
    ///
    /// # Errors
    /// None but for a file whose hash cannot be sent in a header.
    pub fn guide() -> Result<Self, Error> {
        Self::new(GUIDE, &BasePath::default(), None)
    }

    fn new(page: &'static str, base: &BasePath, grafana_url: Option<&str>) -> Result<Self, Error> {
        let mut files = HashMap::new();
        for path in Dist::iter() {
            if let Some(embedded) = Dist::get(&path) {
                let plain = if path == page {
                    with_base(&String::from_utf8_lossy(&embedded.data), base).into_bytes()
                } else {
                    embedded.data.into_owned()
                };
                let tag: String = embedded.metadata.sha256_hash()[..12]
                    .iter()
                    .map(|b| format!("{b:02x}"))
                    .collect();
                let tag = format!("\"{tag}{}\"", if path == page { base.prefix() } else { "" });
                files.insert(path.to_string(), File::new(&path, plain, &tag)?);
            }
        }
        let policy = header(&policy(grafana_url))?;
        Ok(Self { files, page, policy })
    }

    /// The file at this path, or the page that every other path is a view of.
    #[must_use]
    pub fn serve(&self, path: &str, asked: &HeaderMap) -> Response {
        let path = path.trim_start_matches('/');
        let file = self.files.get(path).or_else(|| {
            // A missing asset is missing: a page in its place would be run as a script.
            (!path.starts_with("assets/")).then(|| self.files.get(self.page)).flatten()
        });
        let Some(file) = file else {
            return (StatusCode::NOT_FOUND, "no such file").into_response();
        };
        let mut headers = HeaderMap::new();
        headers.insert(CACHE_CONTROL, file.cache.clone());
        headers.insert(ETAG, file.tag.clone());
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        self.guard(&mut headers);
        if asked.get(IF_NONE_MATCH).is_some_and(|tag| *tag == file.tag) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        headers.insert(CONTENT_TYPE, file.content_type.clone());
        let accepts = asked.get(ACCEPT_ENCODING).and_then(|accepts| accepts.to_str().ok());
        let body = match &file.gzip {
            Some(gzip) if accepts.is_some_and(|accepts| accepts.contains("gzip")) => {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                gzip
            }
            _ => &file.plain,
        };
        (headers, body.clone()).into_response()
    }

    /// What browsers must not do with any answer.
    pub(crate) fn guard(&self, headers: &mut HeaderMap) {
        let fixed = [
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "same-origin"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        ];
        for (name, value) in fixed {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(CONTENT_SECURITY_POLICY, self.policy.clone());
    }
}

impl File {
    fn new(path: &str, plain: Vec<u8>, tag: &str) -> Result<Self, Error> {
        let content_type = match path.rsplit_once('.').map(|(_, kind)| kind) {
            Some("html") => "text/html; charset=utf-8",
            Some("js" | "mjs") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("png") => "image/png",
            Some("ico") => "image/x-icon",
            Some("json" | "map") => "application/json",
            Some("webmanifest") => "application/manifest+json",
            Some("woff2") => "font/woff2",
            Some("txt") => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        };
        // Names under assets/ change with their content.
        let cache = match path.starts_with("assets/") {
            true => "public, max-age=31536000, immutable",
            false => "no-cache",
        };
        let compressed = gzip(&plain).filter(|gzip| gzip.len() * 10 < plain.len() * 9);
        Ok(Self {
            plain: plain.into(),
            gzip: compressed.map(Bytes::from),
            content_type: HeaderValue::from_static(content_type),
            cache: HeaderValue::from_static(cache),
            tag: header(tag)?,
        })
    }
}

fn gzip(plain: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).ok()?;
    encoder.finish().ok()
}

fn header(value: &str) -> Result<HeaderValue, Error> {
    HeaderValue::from_str(value)
        .map_err(|_| Error::Usage(format!("{value:?} cannot be sent in a header")))
}

/// The page with the path that its links are relative to.
fn with_base(page: &str, base: &BasePath) -> String {
    let tag = format!("<base href=\"{base}\">");
    if page.contains(BASE) {
        return page.replacen(BASE, &tag, 1);
    }
    page.replacen("<head>", &format!("<head>{tag}"), 1)
}

/// Everything comes from here and goes to here.
fn policy(grafana_url: Option<&str>) -> String {
    let origin = grafana_url.and_then(origin);
    let frames = origin.map_or_else(|| "'none'".to_owned(), |origin| format!("'self' {origin}"));
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' \
         data:; font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; \
         base-uri 'self'; form-action 'self'; frame-ancestors 'none'; frame-src {frames}"
    )
}

fn origin(url: &str) -> Option<String> {
    let uri: http::Uri = url.parse().ok()?;
    Some(format!("{}://{}", uri.scheme_str()?, uri.authority()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_learns_where_it_is() {
        let base: BasePath = "/fleet".parse().unwrap();
        let page = "<head><base href=\"/\"></head>";
        assert_eq!(with_base(page, &base), "<head><base href=\"/fleet/\"></head>");
        assert_eq!(with_base("<head></head>", &base), "<head><base href=\"/fleet/\"></head>");
    }

    #[test]
    fn frames_come_from_grafana_alone() {
        assert!(policy(None).ends_with("frame-src 'none'"));
        let policy = policy(Some("https://grafana.example:3000/d/x?a=b"));
        assert!(policy.ends_with("frame-src 'self' https://grafana.example:3000"), "{policy}");
    }

    #[test]
    fn deep_links_get_the_page_and_missing_assets_nothing() {
        let assets = Assets::dashboard(&BasePath::default(), None).unwrap();
        let status = |path: &str| assets.serve(path, &HeaderMap::new()).status();
        assert_eq!(status("/needs"), StatusCode::OK);
        assert_eq!(status("/"), StatusCode::OK);
        assert_eq!(status("/assets/gone-123.js"), StatusCode::NOT_FOUND);
        let page = assets.serve("/", &HeaderMap::new());
        assert_eq!(page.headers()[CACHE_CONTROL], "no-cache");
        assert!(page.headers().contains_key(CONTENT_SECURITY_POLICY));
        let again = HeaderMap::from_iter([(IF_NONE_MATCH, page.headers()[ETAG].clone())]);
        assert_eq!(assets.serve("/", &again).status(), StatusCode::NOT_MODIFIED);
    }

    #[test]
    fn the_guide_is_a_page_of_its_own() {
        let page = |assets: &Assets| assets.files[assets.page].plain.clone();
        let guide = Assets::guide().unwrap();
        assert_ne!(page(&guide), page(&Assets::dashboard(&BasePath::default(), None).unwrap()));
        assert!(String::from_utf8_lossy(&page(&guide)).contains("assets/guide-"));
        let answer = guide.serve("/", &HeaderMap::new());
        assert!(answer.headers().contains_key(CONTENT_SECURITY_POLICY));
    }
}
