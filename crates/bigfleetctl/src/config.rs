//! `~/.config/bigfleet/config.yaml`: for each context the coordinator's addresses, the
//! TLS files and how to print.

use std::{
    collections::BTreeMap,
    env, fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{Error, output::Format, yaml};

/// Names the file, if it is not where it usually is.
pub const VARIABLE: &str = "BIGFLEET_CONFIG";

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// The context that holds when none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_context: Option<String>,
    /// Fleets by name.
    #[serde(default)]
    pub contexts: BTreeMap<String, Context>,
}

/// How to reach one fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Context {
    /// `host:port` of the replicas.
    #[serde(default)]
    pub coordinator: Vec<String>,
    /// Certificate, key and CA bundle; none of them is plaintext.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsPaths>,
    /// What `-o` is when it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Format>,
}

/// Paths; relative ones are relative to the configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TlsPaths {
    /// `--tls-cert`
    pub cert: PathBuf,
    /// `--tls-key`
    pub key: PathBuf,
    /// `--tls-ca`
    pub ca: PathBuf,
}

/// The file, and what is in it.
#[derive(Debug, Clone, Default)]
pub struct ConfigFile {
    /// Where it is, or would be; none without a home.
    pub path: Option<PathBuf>,
    /// What it says; nothing if it is not there.
    pub config: Config,
}

impl ConfigFile {
    /// The file that the environment names, else that of the user. One that is named
    /// must be there.
    pub fn load() -> Result<Self, Error> {
        let given = |name| env::var_os(name).filter(|value| !value.is_empty());
        match (given(VARIABLE), given("HOME")) {
            (Some(named), _) => Self::read(Path::new(&named), true),
            (None, Some(home)) => {
                Self::read(&Path::new(&home).join(".config/bigfleet/config.yaml"), false)
            }
            (None, None) => Ok(Self::default()),
        }
    }

    fn read(path: &Path, required: bool) -> Result<Self, Error> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !required => String::new(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let problem =
                    format!("is not there, and {VARIABLE} names it; correct or unset the variable");
                return Err(Error::Config { path: path.to_owned(), problem });
            }
            Err(source) => return Err(Error::file(path)(source)),
        };
        let config =
            parse(&text).map_err(|problem| Error::Config { path: path.to_owned(), problem })?;
        Ok(Self { path: Some(path.to_owned()), config })
    }

    /// The folder of the file, where what is learnt is kept too.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.path.as_deref().and_then(Path::parent)
    }

    /// The context of this name, else the current one.
    pub fn context(&self, name: Option<&str>) -> Result<Option<(String, Context)>, Error> {
        let Some(name) = name.or(self.config.current_context.as_deref()) else { return Ok(None) };
        let known = || {
            let names: Vec<&str> = self.config.contexts.keys().map(String::as_str).collect();
            if names.is_empty() { "there are none".to_owned() } else { names.join(", ") }
        };
        let file = self.path.as_deref().unwrap_or_else(|| Path::new("the configuration")).display();
        let unknown =
            || Error::Usage(format!("no context is called {name:?} in {file}; known: {}", known()));
        let mut context = self.config.contexts.get(name).cloned().ok_or_else(unknown)?;
        if let (Some(tls), Some(folder)) = (&mut context.tls, self.folder()) {
            for path in [&mut tls.cert, &mut tls.key, &mut tls.ca] {
                *path = folder.join(&*path);
            }
        }
        Ok(Some((name.to_owned(), context)))
    }
}

fn parse(text: &str) -> Result<Config, String> {
    if text.trim().is_empty() {
        return Ok(Config::default());
    }
    yaml::read(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
currentContext: prod
contexts:
  prod:
    coordinator: [a:7790, b:7790]
    tls: {cert: tls.crt, key: /abs/tls.key, ca: ca.crt}
    output: json
  dev:
    coordinator: [127.0.0.1:7790]
";

    fn file() -> ConfigFile {
        ConfigFile { path: Some("/home/x/config.yaml".into()), config: parse(TEXT).unwrap() }
    }

    #[test]
    fn reads_contexts_with_paths_from_its_own_folder() {
        let (name, context) = file().context(None).unwrap().unwrap();
        assert_eq!((name.as_str(), context.coordinator.len()), ("prod", 2));
        assert_eq!(context.output, Some(Format::Json));
        let tls = context.tls.unwrap();
        assert_eq!(tls.cert, Path::new("/home/x/tls.crt"));
        assert_eq!(tls.key, Path::new("/abs/tls.key"));
        assert_eq!(file().context(Some("dev")).unwrap().unwrap().1.tls, None);
    }

    #[test]
    fn an_unknown_context_is_refused_with_those_there_are() {
        let error = file().context(Some("test")).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().ends_with("known: dev, prod"), "{error}");
        assert!(ConfigFile::default().context(None).unwrap().is_none());
    }

    #[test]
    fn unknown_fields_are_refused_with_their_line() {
        for (text, line, field) in [
            ("contexts: {}\ncurent: x\n", "line 2", "curent"),
            ("contexts:\n  a:\n    coordinators: [x:1]\n", "line 3", "coordinators"),
            ("contexts:\n  a:\n    output: xml\n", "line 3", "xml"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(line) && problem.contains(field), "{problem}");
        }
    }

    #[test]
    fn nothing_is_no_configuration() {
        assert_eq!(parse("\n").unwrap(), Config::default());
        let error = ConfigFile::read(Path::new("/nowhere/x.yaml"), true).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere/x.yaml: "), "{error}");
        ConfigFile::read(Path::new("/nowhere/x.yaml"), false).unwrap();
    }
}
