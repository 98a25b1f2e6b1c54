//! What stands between shards and their provider, passes everything on, and writes down
//! who changed which machine. It can keep calls back: those of a process that died
//! meanwhile arrive all the same, as on a network that is slow.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use bigfleet_net::{
    grpc::{GrpcServer, connect_lazy},
    message_limits,
    readiness::Readiness,
    rule::Rule,
    tls::Security,
};
use bigfleet_scripted::served::Served;
use bigfleet_wire::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineList,
    MachineRef, TransitionAck,
    capacity_provider_client::CapacityProviderClient,
    capacity_provider_server::{CapacityProvider, CapacityProviderServer},
};
use tokio::sync::watch;
use tonic::{Code, Request, Response, Status, transport::Channel};

/// A shard asked for a change of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) shard: String,
    pub(crate) epoch: i64,
    pub(crate) machine: String,
    pub(crate) method: &'static str,
    /// None as long as there is no answer.
    pub(crate) code: Option<Code>,
}

impl Call {
    /// The words of a process about its epoch are of no machine.
    fn is_word(&self) -> bool {
        self.machine.starts_with("epoch.") || self.machine.starts_with("epoch-probe.")
    }
}

type Calls = Arc<Mutex<Vec<Call>>>;

/// What is kept back.
#[derive(Clone, Copy, Debug, Default)]
struct Gate {
    /// Changes of machines.
    changes: bool,
    /// What processes say of their epochs.
    words: bool,
    /// How often all that waited was lost.
    losses: usize,
}

/// The tap; it ends with this.
pub(crate) struct Tap {
    served: Served,
    calls: Calls,
    gate: watch::Sender<Gate>,
}

impl Tap {
    /// Passes calls on to this provider.
    pub(crate) async fn open(provider: &str) -> Self {
        let channel = connect_lazy(provider, &Security::Plaintext, Rule::any_certificate());
        let (calls, gate) = (Calls::default(), watch::Sender::new(Gate::default()));
        let wire = Wire {
            provider: message_limits!(CapacityProviderClient::new(channel.unwrap())),
            calls: calls.clone(),
            gate: gate.subscribe(),
        };
        let readiness = Readiness::new("starting");
        readiness.set_ready();
        let server = GrpcServer::new(Security::Plaintext, readiness)
            .add_service(message_limits!(CapacityProviderServer::new(wire)));
        Self { served: Served::start(server).await.unwrap(), calls, gate }
    }

    pub(crate) fn address(&self) -> &str {
        self.served.addr()
    }

    /// Keeps changes of machines back, or lets those that wait pass.
    pub(crate) fn keep_changes(&self, kept: bool) {
        self.gate.send_modify(|gate| gate.changes = kept);
    }

    /// The same with what processes say of their epochs.
    pub(crate) fn keep_words(&self, kept: bool) {
        self.gate.send_modify(|gate| gate.words = kept);
    }

    /// Whatever waits never arrives.
    pub(crate) fn lose(&self) {
        self.gate.send_modify(|gate| {
            let losses = gate.losses + 1;
            *gate = Gate { losses, ..Gate::default() };
        });
    }

    /// All changes of machines that were asked for so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let all = self.calls.lock().unwrap();
        all.iter().filter(|call| !call.is_word()).cloned().collect()
    }

    /// Epochs that processes of a shard announced, as far as they were heard.
    pub(crate) fn announced(&self, shard: &str) -> BTreeSet<i64> {
        let word = format!("epoch.{shard}");
        let all = self.calls.lock().unwrap();
        let words = all.iter().filter(|call| call.machine == word && call.code.is_some());
        words.map(|call| call.epoch).collect()
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
#[derive(Clone)]
struct Wire {
    provider: CapacityProviderClient<Channel>,
    calls: Calls,
    gate: watch::Receiver<Gate>,
}

/// Notes a call, passes it on, and notes the answer, whether its caller lives or not.
macro_rules! pass_on {
    ($self:ident, $request:ident, $name:literal, $method:ident) => {{
        let asked = $request.get_ref();
        let call = Call {
            shard: asked.shard_id.clone(),
            epoch: asked.shard_epoch,
            machine: asked.machine_id.clone(),
            method: $name,
            code: None,
        };
        let (mut wire, request) = ($self.clone(), plain($request));
        let passed = tokio::spawn(async move {
            let (at, word) = wire.note(call);
            wire.passes(word).await?;
            let answer = wire.provider.$method(request).await;
            let code = answer.as_ref().map_or_else(Status::code, |_| Code::Ok);
            wire.calls.lock().unwrap()[at].code = Some(code);
            answer
        });
        passed.await.unwrap()
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
    /// The place of a call, and whether it is a word about an epoch.
    fn note(&self, call: Call) -> (usize, bool) {
        let mut calls = self.calls.lock().unwrap();
        let word = call.is_word();
        calls.push(call);
        (calls.len() - 1, word)
    }

    /// Waits until such calls are let through.
    async fn passes(&mut self, word: bool) -> Result<(), Status> {
        let before = self.gate.borrow().losses;
        let kept = |gate: &Gate| if word { gate.words } else { gate.changes };
        let opened = self.gate.wait_for(|gate| !kept(gate)).await.map(|gate| gate.losses);
        match opened {
            Ok(losses) if losses == before => Ok(()),
            _ => Err(Status::unavailable("lost on its way")),
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
