//! `ShardRead`: why a need is unmet (wire chapter §5).

use std::{collections::VecDeque, sync::Arc};

use bigfleet_net::{message_limits, peer::Gate, rule::Rule};
use bigfleet_wire::v1alpha1::{
    InspectNeedsHeader, InspectNeedsRequest, InspectNeedsResponse, NeedView,
    inspect_needs_response::Frame,
    shard_read_server::{ShardRead, ShardReadServer},
};
use tonic::{Request, Response, Status};

use crate::{
    metrics::WatchMethod,
    readers::{Answers, Place, Readers, Source},
    shard::Shard,
    views::{
        NeedRow,
        wire::{count, cycle_number, need_view},
    },
};

/// Rows made ready at once: from one count of the machines.
const CHUNK: usize = 2_048;

/// The service.
pub(crate) struct Read {
    shard: Arc<Shard>,
    readers: Arc<Readers>,
    gate: Gate,
}

impl Read {
    pub(crate) const fn new(shard: Arc<Shard>, readers: Arc<Readers>, gate: Gate) -> Self {
        Self { shard, readers, gate }
    }

    pub(crate) fn into_service(self) -> ShardReadServer<Self> {
        message_limits!(ShardReadServer::new(self))
    }
}

#[tonic::async_trait]
impl ShardRead for Read {
    type InspectNeedsStream = Answers<InspectNeedsResponse>;

    async fn inspect_needs(
        &self,
        request: Request<InspectNeedsRequest>,
    ) -> Result<Response<Self::InspectNeedsStream>, Status> {
        self.gate.admit(&request, &Rule::readers())?;
        let place = self.readers.admit(WatchMethod::InspectNeeds, &request)?;
        let InspectNeedsRequest { cluster_id, limit } = request.into_inner();
        let snapshot = self.shard.needs_read.load();
        let (cycle, computed_at_unix_nanos) = (snapshot.cycle, snapshot.computed_at);
        let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        // Sorting may take long.
        let taken = tokio::task::spawn_blocking(move || {
            let head = |rows: &[Arc<NeedRow>]| {
                (rows.len(), rows.iter().take(limit).cloned().collect::<VecDeque<_>>())
            };
            if cluster_id.is_empty() {
                head(&snapshot.sorted())
            } else {
                head(snapshot.of(&cluster_id))
            }
        });
        let (total, rows) = taken.await.map_err(|error| Status::internal(error.to_string()))?;
        let header = InspectNeedsHeader {
            cycle: cycle_number(cycle),
            computed_at_unix_nanos,
            total_needs: count(total),
        };
        let shard = self.shard.clone();
        let needs = Needs { shard, cycle, header: Some(header), rows, ready: VecDeque::new() };
        Ok(Response::new(place.serve(needs)))
    }
}

/// The rows of one answer.
struct Needs {
    shard: Arc<Shard>,
    cycle: u64,
    header: Option<InspectNeedsHeader>,
    rows: VecDeque<Arc<NeedRow>>,
    ready: VecDeque<NeedView>,
}

impl Needs {
    /// Makes the next rows ready.
    async fn prepare(&mut self) -> Result<(), Status> {
        let some = self.rows.len().min(CHUNK);
        let rows: Vec<Arc<NeedRow>> = self.rows.drain(..some).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let (shard, cycle) = (self.shard.clone(), self.cycle);
        let views = tokio::task::spawn_blocking(move || {
            shard.fill_extras(&rows);
            rows.iter().map(|row| need_view(row, cycle, &row.known_extras())).collect()
        });
        self.ready = views.await.map_err(|error| Status::internal(error.to_string()))?;
        Ok(())
    }
}

impl Source for Needs {
    type Item = InspectNeedsResponse;

    async fn next(&mut self, _: &Place) -> Option<Result<InspectNeedsResponse, Status>> {
        let frame = match self.header.take() {
            Some(header) => Frame::Header(header),
            None => {
                if self.ready.is_empty()
                    && let Err(status) = self.prepare().await
                {
                    return Some(Err(status));
                }
                Frame::Need(self.ready.pop_front()?)
            }
        };
        Some(Ok(InspectNeedsResponse { frame: Some(frame) }))
    }
}
