//! A server on this machine for as long as somebody has it.

use bigfleet_net::{grpc::GrpcServer, listen::ListenAddr, shutdown::Shutdown};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::Error;

/// A server that runs. Dropping it cuts its connections.
#[derive(Debug)]
pub struct Served {
    addr: String,
    shutdown: Shutdown,
    task: JoinHandle<Result<(), bigfleet_net::Error>>,
}

impl Served {
    /// Serves on a free port.
    pub async fn start(server: GrpcServer) -> Result<Self, Error> {
        let loopback: ListenAddr =
            "127.0.0.1:0".parse().map_err(|problem| Error::Option { option: "listen", problem })?;
        Self::start_on(loopback.bind().await?, server)
    }

    /// Serves on this listener: somebody who comes back where they were.
    pub fn start_on(listener: TcpListener, server: GrpcServer) -> Result<Self, Error> {
        let addr = listener.local_addr().map_err(bigfleet_net::Error::Serve)?.to_string();
        let shutdown = Shutdown::new();
        let task = tokio::spawn(server.serve(listener, shutdown.clone()));
        Ok(Self { addr, shutdown, task })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> &str {
        &self.addr
    }

    /// Stops serving and returns when all connections are closed.
    pub async fn stop(mut self) -> Result<(), Error> {
        self.shutdown.request();
        // A server task that panicked has said so itself.
        (&mut self.task).await.unwrap_or(Ok(())).map_err(Error::Net)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}
