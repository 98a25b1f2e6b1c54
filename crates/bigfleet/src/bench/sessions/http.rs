//! As much of HTTP as it takes to read a page of a process on this machine.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::error::Error;

const LIMIT: Duration = Duration::from_secs(30);

/// The body of a page; an error for any status but 200.
pub(super) async fn get(addr: &str, path: &str) -> Result<String, Error> {
    let failed = |why: String| Error::Load(format!("http://{addr}{path}: {why}"));
    let read = async {
        let mut stream = TcpStream::connect(addr).await?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: {addr}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = timeout(LIMIT, read)
        .await
        .map_err(|_| failed("no answer in time".to_owned()))?
        .map_err(|error| failed(error.to_string()))?;
    let status = answer.lines().next().unwrap_or_default();
    match answer.split_once("\r\n\r\n") {
        Some((_, body)) if status.split(' ').nth(1) == Some("200") => Ok(body.to_owned()),
        _ => Err(failed(status.to_owned())),
    }
}
