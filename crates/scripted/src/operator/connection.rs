//! A connection that can be dropped as a crash or a cut cable drops it.
//!
//! Letting go of a channel is polite: the library ends its streams first, and a
//! shard could not tell that from a half-close. So all its tasks run where they
//! can be cut, and with them goes the socket.

use std::pin::Pin;

use bigfleet_net::{grpc, tls::Security};
use hyper::rt::Executor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{Status, transport::Channel};

use super::options::OperatorOptions;

/// The tasks of one connection; dropping it cuts them.
#[derive(Debug, Default)]
pub(super) struct Connection {
    tasks: Tasks,
}

#[derive(Debug, Clone, Default)]
struct Tasks {
    cut: CancellationToken,
    running: TaskTracker,
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Executor<Task> for Tasks {
    fn execute(&self, task: Task) {
        self.running.spawn(self.cut.clone().run_until_cancelled_owned(task));
    }
}

impl Connection {
    pub(super) async fn dial(
        addr: &str,
        security: &Security,
        options: &OperatorOptions,
    ) -> Result<(Self, Channel), Status> {
        let connection = Self::default();
        let tasks = connection.tasks.clone();
        let tune = |endpoint: tonic::transport::Endpoint| {
            endpoint.initial_stream_window_size(options.window).executor(tasks)
        };
        let channel = grpc::connect_tuned(addr, security, options.expect.clone(), tune)
            .await
            .map_err(|error| Status::unavailable(error.to_string()))?;
        Ok((connection, channel))
    }

    /// Returns when the socket is closed.
    pub(super) async fn cut(self) {
        self.tasks.cut.cancel();
        self.tasks.running.close();
        self.tasks.running.wait().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.tasks.cut.cancel();
    }
}
