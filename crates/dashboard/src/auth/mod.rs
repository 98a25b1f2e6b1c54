//! Who looks, and at what (experience chapter §3.1).

mod cidr;
mod guard;
mod key;
mod oidc;
mod pages;
mod proxy;
mod viewer;

pub use self::{cidr::Cidr, oidc::OidcConfig, proxy::ProxyConfig};
pub(crate) use self::{
    guard::{Guard, LOGOUT, require, router},
    pages::Pages,
    viewer::Viewer,
};

/// How viewers are known.
#[derive(Clone, Debug, Default)]
pub enum AuthConfig {
    /// Not at all: everybody sees everything.
    #[default]
    None,
    /// They sign in at an OpenID issuer.
    Oidc(OidcConfig),
    /// A proxy in front says who they are.
    ProxyHeader(ProxyConfig),
}

impl AuthConfig {
    /// As the flag writes it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Oidc(_) => "oidc",
            Self::ProxyHeader(_) => "proxy-header",
        }
    }
}
