//! What stands between shards and their provider, passes everything on, and writes down
//! who changed which machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use bigfleet_net::{
    grpc::{GrpcServer, connect_lazy},
    listen::ListenAddr,
    message_limits,
    readiness::Readiness,
    rule::Rule,
    shutdown::Shutdown,
    tls::Security,
};
use bigfleet_wire::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineList,
    MachineRef, TransitionAck,
    capacity_provider_client::CapacityProviderClient,
    capacity_provider_server::{CapacityProvider, CapacityProviderServer},
};
use tonic::{Code, Request, Response, Status, transport::Channel};

/// A shard asked for a change of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) shard: String,
    pub(crate) machine: String,
    pub(crate) method: &'static str,
    /// None as long as there is no answer; for ever, if the caller died.
    pub(crate) code: Option<Code>,
}

type Calls = Arc<Mutex<Vec<Call>>>;

/// The tap; it ends with this.
pub(crate) struct Tap {
    pub(crate) address: String,
    calls: Calls,
    shutdown: Shutdown,
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.shutdown.token().cancel();
    }
}

impl Tap {
    /// Passes calls on to this provider.
    pub(crate) async fn open(provider: &str) -> Self {
        let any: ListenAddr = "127.0.0.1:0".parse().unwrap();
        let listener = any.bind().await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let channel = connect_lazy(provider, &Security::Plaintext, Rule::any_certificate());
        let calls = Calls::default();
        let wire = Wire {
            provider: message_limits!(CapacityProviderClient::new(channel.unwrap())),
            calls: calls.clone(),
        };
        let readiness = Readiness::new("starting");
        readiness.set_ready();
        let server = GrpcServer::new(Security::Plaintext, readiness)
            .add_service(message_limits!(CapacityProviderServer::new(wire)));
        let shutdown = Shutdown::new();
        tokio::spawn(server.serve(listener, shutdown.clone()));
        Self { address, calls, shutdown }
    }

    /// All changes of machines that were asked for so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// Who changed which machine.
    pub(crate) fn by_caller(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut callers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for call in self.calls() {
            callers.entry(call.shard).or_default().insert(call.machine);
        }
        callers
    }

    /// The shard that had a machine made, or gave it to a cluster, is the next to change
    /// it, until it has drained or deleted it. For as long as no cluster and no domain
    /// moves.
    pub(crate) fn nobody_meddles(&self) {
        let mut users: BTreeMap<String, Call> = BTreeMap::new();
        for call in self.calls().into_iter().filter(|call| call.code == Some(Code::Ok)) {
            if let Some(user) = users.get(&call.machine) {
                assert_eq!(user.shard, call.shard, "{user:?}, then {call:?}");
            }
            match call.method {
                "Create" | "Configure" => users.insert(call.machine.clone(), call),
                _ => users.remove(&call.machine),
            };
        }
    }
}

/// The server.
struct Wire {
    provider: CapacityProviderClient<Channel>,
    calls: Calls,
}

/// Notes a call, passes it on, and notes the answer.
macro_rules! pass_on {
    ($self:ident, $request:ident, $name:literal, $method:ident) => {{
        let asked = $request.get_ref();
        let (shard, machine) = (asked.shard_id.clone(), asked.machine_id.clone());
        let at = $self.note(Call { shard, machine, method: $name, code: None });
        let answer = $self.provider.clone().$method(plain($request)).await;
        $self.answered(at, answer.as_ref().map_or_else(Status::code, |_| Code::Ok));
        answer
    }};
}

/// Without what belongs to the connection that it came by, but for the deadline.
fn plain<T>(request: Request<T>) -> Request<T> {
    let deadline = request.metadata().get("grpc-timeout").cloned();
    let mut plain = Request::new(request.into_inner());
    if let Some(deadline) = deadline {
        plain.metadata_mut().insert("grpc-timeout", deadline);
    }
    plain
}

impl Wire {
    /// The place of a call; the words of a process about its epoch are of no machine.
    fn note(&self, call: Call) -> Option<usize> {
        if call.machine.starts_with("epoch.") || call.machine.starts_with("epoch-probe.") {
            return None;
        }
        let mut calls = self.calls.lock().unwrap();
        calls.push(call);
        Some(calls.len() - 1)
    }

    fn answered(&self, at: Option<usize>, code: Code) {
        if let Some(at) = at {
            self.calls.lock().unwrap()[at].code = Some(code);
        }
    }
}

#[tonic::async_trait]
impl CapacityProvider for Wire {
    async fn create(
        &self,
        request: Request<CreateRequest>,
    ) -> Result<Response<TransitionAck>, Status> {
        pass_on!(self, request, "Create", create)
    }

    async fn configure(
        &self,
        request: Request<ConfigureRequest>,
    ) -> Result<Response<TransitionAck>, Status> {
        pass_on!(self, request, "Configure", configure)
    }

    async fn drain(
        &self,
        request: Request<DrainRequest>,
    ) -> Result<Response<TransitionAck>, Status> {
        pass_on!(self, request, "Drain", drain)
    }

    async fn delete(
        &self,
        request: Request<DeleteRequest>,
    ) -> Result<Response<TransitionAck>, Status> {
        pass_on!(self, request, "Delete", delete)
    }

    async fn get(&self, request: Request<MachineRef>) -> Result<Response<Machine>, Status> {
        self.provider.clone().get(plain(request)).await
    }

    async fn list(&self, request: Request<ListFilter>) -> Result<Response<MachineList>, Status> {
        self.provider.clone().list(plain(request)).await
    }
}
