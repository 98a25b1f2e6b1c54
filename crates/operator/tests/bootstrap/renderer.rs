//! Requests in, blobs out.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use bigfleet_net::shutdown::Shutdown;
use bigfleet_operator::bootstrap::{
    Error, JoinSettings, Observer, Outcome, Reload, Renderer, Settings,
    tokens::{Pool, Token},
};
use bigfleet_wire::v1alpha1::{
    BootstrapRequest, NodeSelectorRequirement, node_selector_requirement::Operator,
};

#[derive(Default)]
struct Counted {
    outcomes: Mutex<Vec<Outcome>>,
    reloads: Mutex<Vec<Reload>>,
}

impl Observer for Counted {
    fn rendered(&self, outcome: Outcome) {
        self.outcomes.lock().unwrap().push(outcome);
    }

    fn reloaded(&self, reload: Reload) {
        self.reloads.lock().unwrap().push(reload);
    }
}

struct Rig {
    dir: tempfile::TempDir,
    settings: Settings,
    counted: Arc<Counted>,
}

const CA: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

impl Rig {
    fn new(template: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings {
            cluster_id: "prod-eu-1".into(),
            template_file: Some(dir.path().join("bootstrap.tmpl")),
            ttl: Duration::from_secs(300),
            join: None,
        };
        let rig = Self { dir, settings, counted: Arc::default() };
        rig.write(template);
        rig
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("bootstrap.tmpl")
    }

    fn write(&self, template: &str) {
        fs::write(self.path(), template).unwrap();
    }

    fn join(&mut self, pool: &Arc<Pool>) {
        let ca_file = self.dir.path().join("ca.crt");
        fs::write(&ca_file, CA).unwrap();
        self.settings.join = Some(JoinSettings {
            api_server: "api.example.com:6443".into(),
            ca_file,
            pool: Arc::clone(pool),
        });
    }

    fn open(&self) -> Result<Renderer, Error> {
        Renderer::open(self.settings.clone(), Arc::<Counted>::clone(&self.counted))
    }

    fn rendered(&self) -> (String, String) {
        answer(&self.open().unwrap())
    }
}

fn request() -> BootstrapRequest {
    let requirement = |key: &str, operator: i32, values: &[&str]| NodeSelectorRequirement {
        key: key.into(),
        operator,
        values: values.iter().map(|&value| value.into()).collect(),
    };
    BootstrapRequest {
        request_id: "r-1".into(),
        machine_id: "m-0042".into(),
        requirements: vec![
            requirement("zone", Operator::In.into(), &["a", "b"]),
            requirement("spot", Operator::NotIn.into(), &["true"]),
            requirement("gpu", Operator::Exists.into(), &[]),
            requirement("old", Operator::DoesNotExist.into(), &[]),
            requirement("rack", Operator::Same.into(), &[]),
            requirement("none", Operator::Unspecified.into(), &[]),
            requirement("later", 99, &["x"]),
        ],
        ..BootstrapRequest::default()
    }
}

/// The blob and the error of the answer, of which one is empty.
fn answer(renderer: &Renderer) -> (String, String) {
    let response = renderer.render(&request());
    assert_eq!(response.request_id, "r-1");
    assert_eq!(response.ttl_seconds == 0, !response.error.is_empty());
    (String::from_utf8(response.user_data.to_vec()).unwrap(), response.error)
}

#[test]
fn without_a_template_a_stub() {
    let mut rig = Rig::new("");
    rig.settings.template_file = None;
    let response = rig.open().unwrap().render(&request());
    assert_eq!(
        &response.user_data[..],
        b"#cloud-config\n# bigfleet stub bootstrap for prod-eu-1\n"
    );
    assert_eq!((response.ttl_seconds, response.error.as_str()), (600, ""));
}

#[test]
fn a_template_sees_the_request() {
    let rig = Rig::new(
        "{{ .ClusterID }} {{ .MachineID }}{{ range .Requirements }} {{ .Key }}:{{ .Operator }}{{ .Values }}{{ end }}",
    );
    let (blob, error) = rig.rendered();
    assert_eq!(error, "");
    assert_eq!(
        blob,
        "prod-eu-1 m-0042 zone:In[a b] spot:NotIn[true] gpu:Exists[] old:DoesNotExist[] \
         rack:Same[] none:[] later:[x]"
    );
    assert_eq!(rig.open().unwrap().render(&request()).ttl_seconds, 300);
    assert_eq!(*rig.counted.outcomes.lock().unwrap(), [Outcome::Success, Outcome::Success]);
}

#[test]
fn a_bad_template_refuses_to_start() {
    let rig = Rig::new("a\n{{ if }}");
    let error = rig.open().unwrap_err().to_string();
    assert!(error.starts_with("--bootstrap-template-file "), "{error}");
    assert!(error.contains(": template: bootstrap:2: "), "{error}");
    fs::remove_file(rig.path()).unwrap();
    assert!(matches!(rig.open(), Err(Error::Template { .. })));
}

#[test]
fn a_failing_template_fails_its_request_alone() {
    let rig = Rig::new("secret {{ .Nope }}");
    let (blob, error) = rig.rendered();
    assert_eq!(blob, "");
    assert!(error.starts_with("template: bootstrap:1:10: "), "{error}");
    assert!(!error.contains("secret"));
    assert_eq!(*rig.counted.outcomes.lock().unwrap(), [Outcome::Error]);
}

#[test]
fn a_changed_template_is_taken_and_a_bad_one_is_not() {
    let rig = Rig::new("one");
    let renderer = rig.open().unwrap();
    renderer.reload();
    assert_eq!(answer(&renderer).0, "one");
    rig.write("{{ bad");
    renderer.reload();
    renderer.reload();
    assert_eq!(answer(&renderer).0, "one");
    rig.write("two");
    renderer.reload();
    assert_eq!(answer(&renderer).0, "two");
    assert_eq!(*rig.counted.reloads.lock().unwrap(), [Reload::Refused, Reload::Taken]);
}

#[tokio::test(start_paused = true)]
async fn the_watch_finds_a_change() {
    let rig = Rig::new("one");
    let renderer = Arc::new(rig.open().unwrap());
    let shutdown = Shutdown::new();
    let watch = tokio::spawn(Arc::clone(&renderer).watch(shutdown.clone()));
    rig.write("two");
    tokio::time::timeout(Duration::from_secs(60), async {
        while answer(&renderer).0 != "two" {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    })
    .await
    .expect("the change is seen");
    shutdown.request();
    watch.await.unwrap();
}

#[test]
fn the_helper_s_fields_are_there_with_the_helper_only() {
    let template = "{{ .APIServer }} {{ .BootstrapToken }} {{ .BootstrapToken }}\n{{ .CABundle }}";
    let mut rig = Rig::new(template);
    assert!(rig.rendered().1.contains("no field APIServer"));

    let pool = Arc::new(Pool::new(2, Duration::from_secs(300)));
    rig.join(&pool);
    let (blob, error) = rig.rendered();
    assert_eq!(blob, "");
    assert!(error.starts_with("template: bootstrap:1:20: no bootstrap token is ready"), "{error}");

    let token = Token::random(Duration::ZERO).unwrap();
    pool.give_back(token.clone());
    let text = token.text();
    assert_eq!(rig.rendered().0, format!("api.example.com:6443 {text} {text}\n{CA}"));
    assert_eq!(pool.ready(), 0);
}

#[test]
fn a_template_that_names_no_token_takes_none() {
    let pool = Arc::new(Pool::new(1, Duration::from_secs(300)));
    pool.give_back(Token::random(Duration::ZERO).unwrap());
    let mut rig = Rig::new("{{ if false }}{{ .BootstrapToken }}{{ end }}{{ . }}");
    rig.join(&pool);
    let (blob, _) = rig.rendered();
    assert!(blob.contains(" *** "), "{blob}");
    assert_eq!(pool.ready(), 1);
}

#[test]
fn a_token_in_a_dropped_blob_is_used_again() {
    let pool = Arc::new(Pool::new(1, Duration::from_secs(300)));
    let token = Token::random(Duration::ZERO).unwrap();
    pool.give_back(token.clone());
    let mut rig = Rig::new("{{ .BootstrapToken }}{{ .Nope }}");
    rig.join(&pool);
    let (_, error) = rig.rendered();
    assert!(!error.contains(&token.text()) && !error.contains(token.secret()), "{error}");
    assert_eq!(pool.take(), Some(token));
}

#[test]
fn a_ca_file_without_a_certificate_refuses_to_start() {
    let mut rig = Rig::new("");
    rig.join(&Arc::new(Pool::new(1, Duration::from_secs(300))));
    fs::write(rig.dir.path().join("ca.crt"), "nothing").unwrap();
    let error = rig.open().unwrap_err().to_string();
    assert!(error.starts_with("--bootstrap-ca-file ") && error.contains("PEM"), "{error}");
}

#[test]
fn nothing_secret_shows_in_debug() {
    let pool = Arc::new(Pool::new(1, Duration::from_secs(300)));
    let token = Token::random(Duration::ZERO).unwrap();
    pool.give_back(token.clone());
    let mut rig = Rig::new("hush {{ \"hush\" }}");
    rig.join(&pool);
    let shown = format!("{:?} {:?} {pool:?} {token:?}", rig.open().unwrap(), rig.settings);
    assert!(!shown.contains("hush") && !shown.contains(token.secret()), "{shown}");
}
