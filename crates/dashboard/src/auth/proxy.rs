//! A proxy in front says who looks.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName};

use super::{Cidr, Viewer};
use crate::api::Refusal;

/// Whom to believe, and what.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// The header with the viewer's name.
    pub header: HeaderName,
    /// Where the proxy comes from.
    pub trusted: Vec<Cidr>,
}

impl ProxyConfig {
    /// Who looks. The header counts from the proxy alone, for anybody can write one.
    pub(super) fn viewer(
        &self,
        peer: Option<IpAddr>,
        headers: &HeaderMap,
    ) -> Result<Viewer, Refusal> {
        let nobody = Refusal::NoIdentity { login: None };
        if !peer.is_some_and(|peer| self.trusted.iter().any(|range| range.contains(peer))) {
            return Err(nobody);
        }
        let mut names = headers.get_all(&self.header).iter();
        let (Some(name), None) = (names.next(), names.next()) else { return Err(nobody) };
        match name.to_str().map(str::trim) {
            Ok(name) if !name.is_empty() => {
                Ok(Viewer { name: name.to_owned(), ..Viewer::default() })
            }
            _ => Err(nobody),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_the_proxy_is_believed() {
        let config = ProxyConfig {
            header: HeaderName::from_static("x-user"),
            trusted: vec!["10.0.0.0/8".parse().unwrap()],
        };
        let headers = |names: &[&'static str]| -> HeaderMap {
            let name = HeaderName::from_static("x-user");
            names.iter().map(|&value| (name.clone(), HeaderValue::from_static(value))).collect()
        };
        let who = |peer: &str, names: &[&'static str]| {
            config.viewer(Some(peer.parse().unwrap()), &headers(names)).map(|viewer| viewer.name)
        };
        assert_eq!(who("10.0.0.1", &["jane"]), Ok("jane".to_owned()));
        for (peer, names) in [
            ("11.0.0.1", &["jane"][..]),
            ("10.0.0.1", &[]),
            ("10.0.0.1", &[" "]),
            ("10.0.0.1", &["jane", "joe"]),
        ] {
            assert!(who(peer, names).is_err(), "{peer} {names:?}");
        }
        assert!(config.viewer(None, &headers(&["jane"])).is_err());
    }
}
