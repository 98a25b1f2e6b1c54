//! Managed clusters that answer without end, and whose credentials come from programs that hang.

use std::{fs, path::PathBuf, time::Duration};

use axum::{Router, body::Body, response::IntoResponse as _, routing::get};
use bigfleet_dashboard::Config;
use bytes::Bytes;
use http::StatusCode;
use serde_json::json;
use tempfile::TempDir;
use tokio::{net::TcpListener, time::Instant};

use crate::rig::{PATIENCE, Viewed, loopback};

/// A kubeconfig for one cluster, at a server whose lists are of so many MiB.
struct Hostile(TempDir);

impl Hostile {
    async fn start(mib: usize) -> Self {
        let list = move || async move {
            let blank = Bytes::from(vec![b' '; 1 << 20]);
            let parts = [Bytes::from_static(br#"{"items":["#)]
                .into_iter()
                .chain((0..mib).map(move |_| blank.clone()))
                .chain([Bytes::from_static(b"]}")]);
            let parts = futures_util::stream::iter(parts.map(Ok::<_, std::io::Error>));
            Body::from_stream(parts).into_response()
        };
        let router = Router::new().fallback(get(list));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let hostile = Self(TempDir::new().unwrap());
        let plugin = hostile.path("plugin");
        fs::write(&plugin, hostile.plugin()).unwrap();
        let exec = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
            "args": [plugin], "env": [{"name": "PASSWORD", "value": "a-secret"}],
            "interactiveMode": "IfAvailable",
        });
        let config = json!({
            "apiVersion": "v1", "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "contexts": [{"name": "prod-a", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"exec": exec}}],
        });
        fs::write(hostile.path("kubeconfig"), config.to_string()).unwrap();
        hostile
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// It gives a token once it is let go on, and asks nobody for anything; in the end it gives up,
    /// so that whoever waits for it on the only thread fails instead of hanging.
    fn plugin(&self) -> String {
        let (began, go_on) = (self.path("began"), self.path("go-on"));
        let (began, go_on) = (began.display(), go_on.display());
        let fail = self.path("fail");
        let fail = fail.display();
        format!(
            r#"echo one >> {began}
[ ! -e {fail} ] || {{ echo "no such account" >&2; exit 3; }}
case "$KUBERNETES_EXEC_INFO" in *'"interactive":false'*) ;; *) exit 1 ;; esac
tries=0
while [ ! -e {go_on} ]; do
  tries=$((tries + 1))
  [ $tries -lt 200 ] || exit 1
  sleep 0.1
done
echo '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"t"}}}}'
"#
        )
    }

    fn let_go_on(&self) {
        fs::write(self.path("go-on"), "").unwrap();
    }

    /// How often the program was started, once it was.
    async fn begun(&self) -> usize {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let lines = fs::read_to_string(self.path("began")).unwrap_or_default().lines().count();
            if lines > 0 {
                return lines;
            }
            assert!(Instant::now() < deadline, "the program is run");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn viewed(&self) -> Viewed {
        Viewed::start(Config { kubeconfig: Some(self.path("kubeconfig")), ..loopback() }).await
    }
}

#[tokio::test]
async fn a_list_without_end_is_refused() {
    for (mib, fits) in [(60, true), (70, false)] {
        let hostile = Hostile::start(mib).await;
        hostile.let_go_on();
        let answered = hostile.viewed().await.get("/api/v1/clusters/prod-a").await;
        if fits {
            assert_eq!(answered.status, StatusCode::OK, "{}", answered.text);
            continue;
        }
        assert_eq!(answered.status, StatusCode::BAD_GATEWAY, "{}", answered.text);
        assert!(answered.text.contains("is larger than 64 MiB"), "{}", answered.text);
    }
}

/// On one thread.
#[tokio::test]
async fn a_program_that_fetches_a_token_keeps_nobody_else_waiting() {
    let hostile = Hostile::start(0).await;
    let viewed = hostile.viewed().await;
    let others = async {
        hostile.begun().await;
        assert_eq!(viewed.get("/api/v1/health").await.status, StatusCode::OK);
        hostile.let_go_on();
    };
    let (answered, ()) = tokio::join!(viewed.get("/api/v1/clusters/prod-a"), others);
    assert_eq!(answered.status, StatusCode::OK, "{}", answered.text);
}

#[tokio::test]
async fn a_program_that_hangs_is_given_up_and_not_run_again_beside_itself() {
    let hostile = Hostile::start(0).await;
    let viewed = hostile.viewed().await;
    let late = async {
        hostile.begun().await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(31)).await;
        tokio::time::resume();
    };
    let (answered, ()) = tokio::join!(viewed.get("/api/v1/clusters"), late);
    let error = answered.body["clusters"][0]["error"].as_str().unwrap();
    assert!(error.contains("no answer within 30 s"), "{error}");
    let again = viewed.get("/api/v1/clusters/prod-a").await;
    assert_eq!(again.status, StatusCode::BAD_GATEWAY, "{}", again.text);
    assert!(again.text.contains("has not ended"), "{}", again.text);
    assert_eq!(hostile.begun().await, 1);
    hostile.let_go_on();
}

/// Its environment may hold what viewers may not read.
#[tokio::test]
async fn of_a_program_that_fails_no_more_is_told_than_what_it_says() {
    let hostile = Hostile::start(0).await;
    fs::write(hostile.path("fail"), "").unwrap();
    let answered = hostile.viewed().await.get("/api/v1/clusters/prod-a").await;
    assert_eq!(answered.status, StatusCode::BAD_GATEWAY, "{}", answered.text);
    assert!(answered.text.contains("no such account"), "{}", answered.text);
    assert!(!answered.text.contains("a-secret"), "{}", answered.text);
}
