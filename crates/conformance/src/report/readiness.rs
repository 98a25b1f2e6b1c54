//! The readiness mode of the target (provider chapter §5). The wire cannot show
//! it; targets on the kit tell it in their metrics.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

const METRIC: &str = "bigfleet_provider_readiness_gate{";
const PATIENCE: Duration = Duration::from_secs(5);

/// What the metrics at this address say.
pub(crate) async fn mode(addr: Option<&str>) -> String {
    let Some(addr) = addr else {
        return "not told (give --target-metrics, or {metrics} in --target-cmd)".to_owned();
    };
    match timeout(PATIENCE, metrics(addr)).await {
        Ok(Ok(text)) => {
            parse(&text).unwrap_or_else(|| "not told by the target's metrics".to_owned())
        }
        Ok(Err(error)) => format!("not told: {addr}: {error}"),
        Err(_) => format!("not told: {addr} does not answer"),
    }
}

async fn metrics(addr: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(addr).await?;
    // HTTP/1.0: the answer ends with the connection.
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {addr}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

fn parse(text: &str) -> Option<String> {
    text.lines().filter(|line| line.trim_end().ends_with(" 1")).find_map(|line| {
        let labels = line.strip_prefix(METRIC)?;
        let (_, mode) = labels.split_once("mode=\"")?;
        Some(mode.split_once('"')?.0.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn reads_the_mode_that_is_on() {
        let text = "# TYPE x gauge\nbigfleet_provider_readiness_gate{mode=\"observed\"} 0\n\
                    bigfleet_provider_readiness_gate{mode=\"ungated\"} 1\n";
        assert_eq!(parse(text).as_deref(), Some("ungated"));
        assert_eq!(parse("other 1\n"), None);
    }
}
