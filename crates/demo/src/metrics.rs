//! What a process says in numbers, as whoever scrapes it reads them.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(2);

/// The metrics of one process at one moment.
pub(crate) struct Metrics(String);

impl Metrics {
    /// Those of the process with this address.
    pub(crate) async fn read(addr: &str) -> io::Result<Self> {
        let text = timeout(PATIENCE, get(addr)).await;
        text.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?.map(Self)
    }

    /// The sum over the series of this name that carry the label, if one is given. None where
    /// there is no such series: that is not zero.
    pub(crate) fn sum(&self, name: &str, label: Option<(&str, &str)>) -> Option<f64> {
        let wanted = label.map(|(key, value)| format!("{key}=\"{value}\""));
        let of = |line: &str| {
            let rest = line.strip_prefix(name)?;
            let (labels, value) = match rest.strip_prefix('{') {
                Some(rest) => rest.rsplit_once("} ")?,
                None => ("", rest.strip_prefix(' ')?),
            };
            let mine = wanted.as_deref().is_none_or(|it| labels.split(',').any(|own| own == it));
            if mine { value.trim().parse::<f64>().ok() } else { None }
        };
        self.0.lines().filter_map(of).fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }
}

async fn get(addr: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(addr).await?;
    // HTTP/1.0: the answer ends with the connection.
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {addr}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_a_name_are_added_up() {
        let text = "HTTP/1.0 200 OK\r\n\r\n# TYPE held gauge\nheld{cluster=\"c\"} 2\n\
                    held{cluster=\"cc\"} 5\nheld_total{kind=\"a\",of=\"c\"} 3\nplain 7\n";
        let metrics = Metrics(text.to_owned());
        assert_eq!(metrics.sum("held", Some(("cluster", "c"))), Some(2.0));
        assert_eq!(metrics.sum("held", None), Some(7.0));
        assert_eq!(metrics.sum("held_total", Some(("of", "c"))), Some(3.0));
        assert_eq!(metrics.sum("plain", None), Some(7.0));
        assert_eq!(metrics.sum("held", Some(("cluster", "b"))), None, "nothing is not zero");
    }
}
