//! Listen addresses as flags write them.

use std::{fmt, io, str::FromStr};

use tokio::net::TcpListener;

use crate::Error;

/// `:7780` (all interfaces) or `host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenAddr {
    host: String,
    port: u16,
}

impl ListenAddr {
    /// All interfaces of the machine, IPv4 and IPv6.
    #[must_use]
    pub const fn all_interfaces(port: u16) -> Self {
        Self { host: String::new(), port }
    }

    /// Port as written; 0 lets the system choose.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Host as written, without brackets; empty for all interfaces.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Opens the listener.
    pub async fn bind(&self) -> Result<TcpListener, Error> {
        let bound = if self.host.is_empty() {
            match TcpListener::bind(("::", self.port)).await {
                Ok(listener) => Ok(listener),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
                // A kernel without IPv6.
                Err(_) => TcpListener::bind(("0.0.0.0", self.port)).await,
            }
        } else {
            TcpListener::bind((self.host.as_str(), self.port)).await
        };
        bound.map_err(|source: io::Error| Error::Listen { addr: self.to_string(), source })
    }
}

impl FromStr for ListenAddr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, port) = split(text).ok_or_else(|| {
            // Who wrote a port alone means that one.
            let port = text.parse::<u16>().unwrap_or(7780);
            format!("{text:?} is not an address; write :{port} or 127.0.0.1:{port} or [::1]:{port}")
        })?;
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for ListenAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Splits `host:port`; the brackets of an IPv6 address go.
pub(crate) fn split(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok())??;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').filter(|inner| inner.contains(':'))?,
        None if host.contains(':') => return None,
        None => host,
    };
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:%".contains(&byte);
    host.bytes().all(legal).then_some((host, port))
}

/// `--metrics-addr`: an address, or `0` for no server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricsAddr {
    /// No HTTP server.
    Disabled,
    /// Where to listen.
    Listen(ListenAddr),
}

impl FromStr for MetricsAddr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" { Ok(Self::Disabled) } else { text.parse().map(Self::Listen) }
    }
}

impl fmt::Display for MetricsAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => f.write_str("0"),
            Self::Listen(addr) => addr.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for (text, host, port) in [
            (":8780", "", 8780),
            ("127.0.0.1:0", "127.0.0.1", 0),
            ("localhost:7780", "localhost", 7780),
            ("[::1]:7780", "::1", 7780),
        ] {
            let addr: ListenAddr = text.parse().unwrap();
            assert_eq!((addr.host(), addr.port(), addr.to_string().as_str()), (host, port, text));
        }
    }

    #[test]
    fn refuses_what_is_no_address() {
        for text in ["", "0", "8780", "localhost", ":", ":65536", ":+1", "::1:80", "[x]:1", "a b:1"]
        {
            // Who wrote a port alone is told how to write that one.
            let port = text.parse::<u16>().unwrap_or(7780);
            let error = text.parse::<ListenAddr>().unwrap_err();
            assert!(error.contains(&format!("write :{port} or 127.0.0.1:{port} ")), "{error}");
        }
    }

    #[test]
    fn zero_disables_metrics() {
        assert_eq!("0".parse(), Ok(MetricsAddr::Disabled));
        assert_eq!(":8780".parse(), Ok(MetricsAddr::Listen(ListenAddr::all_interfaces(8780))));
        assert_eq!(MetricsAddr::Disabled.to_string(), "0");
        assert!("".parse::<MetricsAddr>().is_err());
    }

    #[tokio::test]
    async fn all_interfaces_answers_on_ipv4() {
        let listener = ListenAddr::all_interfaces(0).bind().await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let taken = ListenAddr::all_interfaces(port).bind().await.unwrap_err();
        let taken = taken.to_string();
        assert!(taken.starts_with(&format!("cannot listen on :{port}")), "{taken}");
        assert!(taken.ends_with("give another address"), "{taken}");
    }
}
