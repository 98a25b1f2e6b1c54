//! Answers bootstrap requests.

use std::{
    cell::OnceCell,
    fmt,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use bigfleet_net::shutdown::Shutdown;
use bigfleet_wire::v1alpha1::{BootstrapBlobResponse, BootstrapRequest};

use super::{
    clock, data,
    source::{Look, Source},
    template::{Field, Limits, Template, Text, Value},
    tokens::{Pool, Token},
};

/// Between two looks at the files.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// `ttl_seconds` of the stub.
const STUB_TTL: i64 = 600;

/// What the flags say.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `--cluster-id`.
    pub cluster_id: String,
    /// `--bootstrap-template-file`; without one a stub is served.
    pub template_file: Option<PathBuf>,
    /// `--bootstrap-ttl`.
    pub ttl: Duration,
    /// `--bootstrap-api-server` and `--bootstrap-ca-file`, with the token helper.
    pub join: Option<JoinSettings>,
}

/// Where machines join, for templates that say so.
#[derive(Debug, Clone)]
pub struct JoinSettings {
    /// `{{ .APIServer }}`.
    pub api_server: String,
    /// The file behind `{{ .CABundle }}`.
    pub ca_file: PathBuf,
    /// The tokens behind `{{ .BootstrapToken }}`.
    pub pool: Arc<Pool>,
}

/// Why rendering cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The template cannot be read, or is none.
    #[error("--bootstrap-template-file {path}: {problem}")]
    Template {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The CA bundle cannot be read, or is none.
    #[error("--bootstrap-ca-file {path}: {problem}")]
    CaBundle {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

/// How a request was answered, for `bootstrap_renders_total{outcome}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With a blob.
    Success,
    /// With an error.
    Error,
}

/// How a change of a file was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// It is in use.
    Taken,
    /// It is bad; the last good one stays in use.
    Refused,
}

/// Who counts.
pub trait Observer: Send + Sync {
    /// A request was answered.
    fn rendered(&self, outcome: Outcome);
    /// A file changed.
    fn reloaded(&self, reload: Reload);
}

/// Counts nothing.
impl Observer for () {
    fn rendered(&self, _: Outcome) {}
    fn reloaded(&self, _: Reload) {}
}

/// Makes the blob for each request.
pub struct Renderer {
    cluster_id: String,
    ttl_seconds: i64,
    template: Option<Source<Template>>,
    join: Option<Join>,
    limits: Limits,
    observer: Arc<dyn Observer>,
}

struct Join {
    api_server: String,
    ca_bundle: Source<Text>,
    pool: Arc<Pool>,
}

impl Renderer {
    /// Reads the template and the CA bundle.
    ///
    /// # Errors
    ///
    /// Refuses to begin with a file that is missing or bad.
    pub fn open(settings: Settings, observer: Arc<dyn Observer>) -> Result<Self, Error> {
        let template = settings.template_file.as_deref().map(open_template).transpose()?;
        if template.is_none() {
            tracing::warn!(
                "no --bootstrap-template-file: machines get a stub that joins no cluster"
            );
        }
        let join = settings.join.map(Join::open).transpose()?;
        // 0 would mean that the blob never expires.
        let ttl_seconds = i64::try_from(settings.ttl.as_secs()).unwrap_or(i64::MAX).max(1);
        Ok(Self {
            cluster_id: settings.cluster_id,
            ttl_seconds,
            template,
            join,
            limits: Limits::by(clock::thread_time),
            observer,
        })
    }

    /// The answer to a request. Waits for nothing but the processor.
    pub fn render(&self, request: &BootstrapRequest) -> BootstrapBlobResponse {
        let mut response = BootstrapBlobResponse {
            request_id: request.request_id.clone(),
            ..BootstrapBlobResponse::default()
        };
        let outcome = match self.blob(request) {
            Ok((blob, ttl_seconds)) => {
                response.user_data = blob.into();
                response.ttl_seconds = ttl_seconds;
                Outcome::Success
            }
            Err(error) => {
                tracing::warn!(
                    request_id = request.request_id,
                    machine_id = request.machine_id,
                    error,
                    "cannot render a bootstrap blob"
                );
                response.error = error;
                Outcome::Error
            }
        };
        self.observer.rendered(outcome);
        response
    }

    fn blob(&self, request: &BootstrapRequest) -> Result<(Vec<u8>, i64), String> {
        let Some(template) = &self.template else {
            let stub =
                format!("#cloud-config\n# bigfleet stub bootstrap for {}\n", self.cluster_id);
            return Ok((stub.into_bytes(), STUB_TTL));
        };
        let mut fields = data::fields(&self.cluster_id, request);
        let lent = Rc::new(OnceCell::new());
        if let Some(join) = &self.join {
            fields.extend(join.fields(&lent));
        }
        let data = Value::structure("bootstrap.Data", fields);
        let rendered = template.current().render(&data, self.limits);
        match (rendered, lent.get(), &self.join) {
            (Ok(blob), _, _) => Ok((blob, self.ttl_seconds)),
            (Err(error), lent, join) => {
                // The blob is dropped, so nobody has seen the token in it.
                if let (Some(token), Some(join)) = (lent, join) {
                    join.pool.give_back(Token::clone(token));
                }
                Err(error.to_string())
            }
        }
    }

    /// Looks for changed files and takes over those that are good.
    pub fn reload(&self) {
        if let Some(template) = &self.template {
            self.told("bootstrap template", template.path(), template.look());
        }
        if let Some(join) = &self.join {
            self.told("CA bundle", join.ca_bundle.path(), join.ca_bundle.look());
        }
    }

    fn told(&self, what: &str, path: &Path, look: Look) {
        let path = path.display();
        match look {
            Look::Same => {}
            Look::Taken => {
                tracing::info!(%path, "{what} changed and is in use");
                self.observer.reloaded(Reload::Taken);
            }
            Look::Refused(problem) => {
                tracing::error!(%path, problem, "{what} changed and is bad; the last good one stays in use");
                self.observer.reloaded(Reload::Refused);
            }
        }
    }

    /// Reloads as files change, until the stop is asked for.
    pub async fn watch(self: Arc<Self>, shutdown: Shutdown) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                () = shutdown.requested() => return,
                _ = ticks.tick() => {}
            }
            let renderer = Arc::clone(&self);
            let look = tokio::task::spawn_blocking(move || renderer.reload());
            if let Err(error) = look.await {
                tracing::error!(%error, "could not look at the bootstrap files");
            }
        }
    }
}

impl fmt::Debug for Renderer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renderer").field("cluster_id", &self.cluster_id).finish_non_exhaustive()
    }
}

fn open_template(path: &Path) -> Result<Source<Template>, Error> {
    let parse = |source: Vec<u8>| Template::parse(source).map_err(|error| error.to_string());
    Source::open(path, parse).map_err(|problem| Error::Template { path: path.to_owned(), problem })
}

impl Join {
    fn open(settings: JoinSettings) -> Result<Self, Error> {
        let ca_bundle = Source::open(&settings.ca_file, ca_bundle)
            .map_err(|problem| Error::CaBundle { path: settings.ca_file, problem })?;
        Ok(Self { api_server: settings.api_server, ca_bundle, pool: settings.pool })
    }

    /// One token per rendering, taken when the template first asks for it.
    fn fields(&self, lent: &Rc<OnceCell<Token>>) -> Vec<(&'static str, Field)> {
        let (pool, lent) = (Arc::clone(&self.pool), Rc::clone(lent));
        let token = Field::Late(Box::new(move || {
            if let Some(token) = lent.get() {
                return Ok(Text::from(token.text().as_str()));
            }
            let token = pool.take().ok_or(
                "no bootstrap token is ready; more are being minted, see --bootstrap-tokens",
            )?;
            Ok(Text::from(lent.get_or_init(|| token).text().as_str()))
        }));
        vec![
            ("BootstrapToken", token),
            ("CABundle", data::ready(Value::String(Text::clone(&self.ca_bundle.current())))),
            ("APIServer", data::ready(Value::string(&self.api_server))),
        ]
    }
}

fn ca_bundle(content: Vec<u8>) -> Result<Text, String> {
    let pem = content.windows(27).any(|bytes| bytes == b"-----BEGIN CERTIFICATE-----");
    if pem { Ok(Text::from(content)) } else { Err("holds no PEM certificate".into()) }
}
