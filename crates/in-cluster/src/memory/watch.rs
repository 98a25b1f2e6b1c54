use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use http::{Response, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kube::core::Status;
use serde_json::json;
use tokio::{sync::watch, time::Instant};

use super::{
    Server,
    answer::{Answer, AnswerBody, status_text},
    collection::Round,
    route::Route,
    selector::Selector,
    write::selector,
};

/// Longest life of a watch that names none.
const LONGEST: Duration = Duration::from_secs(1800);

/// A watch that somebody reads.
struct Watch {
    server: Server,
    route: Route,
    selector: Selector,
    /// The last version told.
    version: u64,
    round: watch::Receiver<Round>,
    cuts: u64,
    deadline: Instant,
    ended: bool,
    /// What is told first.
    opening: Option<String>,
}

/// Begins a watch.
pub(super) fn watch(server: &Server, route: Route) -> Result<Response<AnswerBody>, Answer> {
    let selector = selector(&route);
    let seconds = route.param("timeoutSeconds").and_then(|seconds| seconds.parse().ok());
    let mut world = server.lock();
    let now = world.version();
    let collection = world.collection(&route)?;
    let round = collection.round.subscribe();
    let cuts = round.borrow().cuts;
    let asked = route.param("resourceVersion").and_then(|version| version.parse().ok());
    let (version, opening) = match asked {
        Some(version) if version > 0 => (version, None),
        // From nowhere: everything that is there, then its changes.
        _ => (now, Some(collection.opening(&selector))),
    };
    drop(world);
    let watch = Watch {
        server: server.clone(),
        route,
        selector,
        version,
        round,
        cuts,
        deadline: Instant::now() + seconds.map_or(LONGEST, Duration::from_secs),
        ended: false,
        opening,
    };
    let lines = stream::unfold(watch, |mut watch| async {
        let line = watch.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(Bytes::from(line))), watch))
    });
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(Box::pin(lines))));
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}

impl Watch {
    async fn next(&mut self) -> Option<String> {
        if let Some(opening) = self.opening.take().filter(|opening| !opening.is_empty()) {
            return Some(opening);
        }
        loop {
            if self.ended || self.round.borrow_and_update().cuts != self.cuts {
                return None;
            }
            if let Some(told) = self.tell()? {
                return Some(told);
            }
            tokio::select! {
                changed = self.round.changed() => changed.ok()?,
                () = tokio::time::sleep_until(self.deadline) => {
                    self.ended = true;
                    return Some(self.bookmark());
                }
            }
        }
    }

    /// What has changed; none when this is the end.
    fn tell(&mut self) -> Option<Option<String>> {
        let key = (self.route.api_version.clone(), self.route.plural.clone());
        let world = self.server.lock();
        let collection = world.collections.get(&key)?;
        match collection.since(self.version, &self.selector) {
            Ok((lines, version)) => {
                self.version = version;
                match lines.is_empty() {
                    true if collection.gone => None,
                    true => Some(None),
                    false => Some(Some(lines.concat())),
                }
            }
            Err(_) => {
                self.ended = true;
                let message = format!("too old resource version: {}", self.version);
                let status = Status::failure(&message, "Expired").with_code(410);
                Some(Some(format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", status_text(&status))))
            }
        }
    }

    fn bookmark(&self) -> String {
        let key = (self.route.api_version.clone(), self.route.plural.clone());
        let world = self.server.lock();
        let kind = world.collections.get(&key).map_or("", |collection| &collection.kind);
        let object = json!({
            "kind": kind,
            "apiVersion": self.route.api_version,
            "metadata": {"resourceVersion": self.version.to_string()},
        });
        format!("{}\n", json!({"type": "BOOKMARK", "object": object}))
    }
}
