//! SnapshotSave: the two artefacts of a backup as a stream.

use std::pin::Pin;

use bigfleet_net::rule::Rule;
use bigfleet_wire::v1alpha1::{
    SnapshotSaveChunk, SnapshotSaveRequest, snapshot_save_chunk::Payload,
};
use tokio_stream::Stream;
use tonic::{Request, Status};

use super::{Coordinator, Replica, Snapshot};

/// Most bytes of a frame.
const CHUNK: usize = 1 << 20;

/// Meta, then data.
pub(super) type Chunks = Pin<Box<dyn Stream<Item = Result<SnapshotSaveChunk, Status>> + Send>>;

impl<R: Replica> Coordinator<R> {
    pub(super) async fn save(
        &self,
        rpc: &'static str,
        request: Request<SnapshotSaveRequest>,
    ) -> Result<Chunks, Status> {
        let led = self.enter(rpc, &request, &Rule::admin())?;
        self.barrier(led).await?;
        // It may be long: only the caller's patience counts.
        let Some(Snapshot { meta_json, state }) = self.replica.snapshot().await? else {
            return Err(Status::not_found("no snapshot yet: nothing has been committed"));
        };
        let frame = |payload| Ok(SnapshotSaveChunk { payload: Some(payload) });
        let data = (0..state.len().div_ceil(CHUNK)).map(move |number| {
            let from = number * CHUNK;
            let to = state.len().min(from + CHUNK);
            frame(Payload::Data(state[from..to].to_vec()))
        });
        let frames = std::iter::once(frame(Payload::MetaJson(meta_json))).chain(data);
        Ok(Box::pin(tokio_stream::iter(frames)))
    }
}
