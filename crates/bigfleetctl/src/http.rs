//! One GET over plain HTTP: metrics need no more.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// Metrics of one process stay far below this.
const MOST: u64 = 64 << 20;

/// The body of a GET that was answered with 200.
pub(crate) async fn get(addr: &str, path: &str, within: Duration) -> Result<String, String> {
    let answer = timeout(within, exchange(addr, path)).await;
    let answer = answer.map_err(|_| "no answer in time".to_owned())?;
    let answer = answer.map_err(|error| error.to_string())?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the answer is not HTTP")?;
    match head.split(' ').nth(1) {
        Some("200") => Ok(body.to_owned()),
        status => Err(format!("{path} answers {}", status.unwrap_or("no status"))),
    }
}

async fn exchange(addr: &str, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(addr).await?;
    // HTTP/1.0: the body comes whole and ends with the connection.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {addr}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MOST).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Where a process's metrics are if nobody says: its host, at the usual port.
pub(crate) fn usual(addr: &str, port: u16) -> String {
    let host = addr.rsplit_once(':').map_or(addr, |(host, _)| host);
    format!("{host}:{port}")
}

/// The value of a label of a metric, and that of the metric.
pub(crate) fn label<'a>(metrics: &'a str, metric: &str, label: &str) -> Option<&'a str> {
    let line = metrics.lines().find(|line| line.starts_with(metric))?;
    line.split_once(&format!("{label}=\""))?.1.split('"').next()
}

/// The value of a metric without labels.
pub(crate) fn value(metrics: &str, metric: &str) -> Option<f64> {
    let mut lines = metrics.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(name, _)| *name == metric)?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str =
        "# HELP x\nbigfleet_build_info{version=\"0.1.0\"} 1\nbigfleet_tls_enabled 1\n";

    #[test]
    fn labels_and_values_are_found() {
        assert_eq!(label(METRICS, "bigfleet_build_info", "version"), Some("0.1.0"));
        assert_eq!(label(METRICS, "bigfleet_build_info", "commit"), None);
        assert_eq!(value(METRICS, "bigfleet_tls_enabled"), Some(1.0));
        assert_eq!(value(METRICS, "bigfleet_tls"), None);
        assert_eq!(usual("[::1]:7780", 8780), "[::1]:8780");
    }
}
