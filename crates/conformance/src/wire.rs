//! The six calls, each with a deadline and recorded as evidence.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bigfleet_net::{
    grpc::{code_name, connect_lazy},
    message_limits,
    rule::Rule,
};
use bigfleet_wire::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineList,
    MachineRef, MachineState, TransitionAck, capacity_provider_client::CapacityProviderClient,
};
use tonic::{Request, Response, Status, transport::Channel};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::{Error, shard::Token, tls::Credentials, trace::Trace};

/// What a client waits for one machine (wire chapter §3).
const CALL_DEADLINE: Duration = Duration::from_secs(30);

/// What a client waits for a whole fleet.
const LIST_DEADLINE: Duration = Duration::from_secs(120);

/// Who reads: reads take any certificate of the CA.
const READER: &str = "conformance-reader";

/// The name of a state, `MACHINE_STATE_` left out.
#[must_use]
pub fn state_name(state: i32) -> String {
    MachineState::try_from(state).map_or_else(
        |_| format!("state {state}"),
        |state| state.as_str_name().trim_start_matches("MACHINE_STATE_").to_owned(),
    )
}

/// A road to one target; clones share its connections.
#[derive(Debug, Clone)]
pub struct Wire {
    road: Arc<Road>,
    trace: Trace,
    /// Whose certificate is shown, whatever the token says.
    holder: Option<Arc<str>>,
}

#[derive(Debug)]
struct Road {
    addr: String,
    credentials: Arc<Credentials>,
    scale: f64,
    channels: Mutex<HashMap<String, Channel>>,
}

impl Wire {
    /// A road that is not dialled yet; `scale` stretches the deadlines.
    #[must_use]
    pub fn new(addr: String, credentials: Arc<Credentials>, scale: f64) -> Self {
        let road = Road { addr, credentials, scale, channels: Mutex::default() };
        Self { road: Arc::new(road), trace: Trace::default(), holder: None }
    }

    /// The same road with evidence of its own.
    #[must_use]
    pub fn recording(&self, trace: Trace) -> Self {
        Self { trace, ..self.clone() }
    }

    /// Other connections to the same target.
    #[must_use]
    pub fn afresh(&self) -> Self {
        let Road { addr, credentials, scale, .. } = &*self.road;
        Self::new(addr.clone(), credentials.clone(), *scale).recording(self.trace.clone())
    }

    /// With the certificate of this shard, whatever the tokens say.
    #[must_use]
    pub fn held_by(&self, shard: &str) -> Self {
        Self { holder: Some(shard.into()), ..self.clone() }
    }

    /// Where it leads.
    #[must_use]
    pub fn addr(&self) -> &str {
        &self.road.addr
    }

    /// How it is secured.
    #[must_use]
    pub fn credentials(&self) -> &Credentials {
        &self.road.credentials
    }

    fn channel(&self, shard: &str) -> Result<Channel, Error> {
        // Without identities one connection serves all.
        let shard = self.holder.as_deref().unwrap_or(shard);
        let caller = match (self.road.credentials.is_tls(), shard) {
            (false, _) => "",
            (true, "") => READER,
            (true, shard) => shard,
        };
        let mut channels = self.road.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(caller) {
            return Ok(channel.clone());
        }
        let security = self.road.credentials.of_shard(caller)?;
        let channel = connect_lazy(&self.road.addr, &security, Rule::any_certificate())?;
        channels.insert(caller.to_owned(), channel.clone());
        Ok(channel)
    }

    fn client(&self, shard: &str) -> Result<CapacityProviderClient<Channel>, Status> {
        let channel =
            self.channel(shard).map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(message_limits!(CapacityProviderClient::new(channel)))
    }

    /// A call's deadline, stretched with all other times.
    fn limit(&self, base: Duration) -> Duration {
        base.mul_f64(self.road.scale.max(1.0))
    }

    /// A request that tells its deadline, as a shard's do.
    fn request<T>(&self, message: T, base: Duration) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.limit(base));
        request
    }

    async fn within<T>(
        &self,
        base: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Status> {
        let limit = self.limit(base);
        match tokio::time::timeout(limit, Box::pin(call)).await {
            Ok(answer) => answer.map(Response::into_inner),
            Err(_) => Err(Status::deadline_exceeded(format!("no answer within {limit:?}"))),
        }
    }

    fn record<T>(&self, call: String, answer: &Result<T, Status>, shown: impl Fn(&T) -> String) {
        match answer {
            Ok(value) => self.trace.add(call, "OK".to_owned(), shown(value)),
            Err(status) => {
                let text = status.message().chars().take(200).collect();
                self.trace.add(call, code_name(status.code()).to_owned(), text);
            }
        }
    }

    /// Create.
    pub async fn create(&self, machine: &str, token: &Token) -> Result<TransitionAck, Status> {
        let request = CreateRequest {
            machine_id: machine.to_owned(),
            shard_id: token.shard.to_string(),
            shard_epoch: token.epoch,
            sequence_number: token.sequence,
        };
        let mut client = self.client(&token.shard)?;
        let answer =
            self.within(CALL_DEADLINE, client.create(self.request(request, CALL_DEADLINE))).await;
        self.record(format!("Create {machine:?} {token}"), &answer, shown_ack);
        answer
    }

    /// Configure.
    pub async fn configure(
        &self,
        machine: &str,
        cluster: &str,
        metadata: BTreeMap<String, String>,
        blob: Vec<u8>,
        token: &Token,
    ) -> Result<TransitionAck, Status> {
        let call = format!(
            "Configure {machine:?} to {cluster:?}, {} keys, {} byte blob, {token}",
            metadata.len(),
            blob.len()
        );
        let request = ConfigureRequest {
            machine_id: machine.to_owned(),
            cluster_id: cluster.to_owned(),
            bootstrap_blob: blob,
            shard_id: token.shard.to_string(),
            shard_epoch: token.epoch,
            sequence_number: token.sequence,
            shard_metadata: metadata,
        };
        let mut client = self.client(&token.shard)?;
        let answer = self
            .within(CALL_DEADLINE, client.configure(self.request(request, CALL_DEADLINE)))
            .await;
        self.record(call, &answer, shown_ack);
        answer
    }

    /// Drain.
    pub async fn drain(
        &self,
        machine: &str,
        grace: i64,
        token: &Token,
    ) -> Result<TransitionAck, Status> {
        let request = DrainRequest {
            machine_id: machine.to_owned(),
            grace_period_seconds: grace,
            shard_id: token.shard.to_string(),
            shard_epoch: token.epoch,
            sequence_number: token.sequence,
        };
        let mut client = self.client(&token.shard)?;
        let answer =
            self.within(CALL_DEADLINE, client.drain(self.request(request, CALL_DEADLINE))).await;
        self.record(format!("Drain {machine:?} grace {grace}s {token}"), &answer, shown_ack);
        answer
    }

    /// Delete.
    pub async fn delete(&self, machine: &str, token: &Token) -> Result<TransitionAck, Status> {
        let request = DeleteRequest {
            machine_id: machine.to_owned(),
            shard_id: token.shard.to_string(),
            shard_epoch: token.epoch,
            sequence_number: token.sequence,
        };
        let mut client = self.client(&token.shard)?;
        let answer =
            self.within(CALL_DEADLINE, client.delete(self.request(request, CALL_DEADLINE))).await;
        self.record(format!("Delete {machine:?} {token}"), &answer, shown_ack);
        answer
    }

    /// Get.
    pub async fn get(&self, machine: &str) -> Result<Machine, Status> {
        let mut client = self.client("")?;
        let request = self.request(MachineRef { id: machine.to_owned() }, CALL_DEADLINE);
        let answer = self.within(CALL_DEADLINE, client.get(request)).await;
        self.record(format!("Get {machine:?}"), &answer, shown_machine);
        answer
    }

    /// List.
    pub async fn list(&self, filter: ListFilter) -> Result<MachineList, Status> {
        let states: Vec<_> = filter.states.iter().map(|&state| state_name(state)).collect();
        let call = format!(
            "List states [{}] max {} since {:?}",
            states.join(","),
            filter.max_results,
            shown_cursor(&filter.since_revision)
        );
        let mut client = self.client("")?;
        let answer =
            self.within(LIST_DEADLINE, client.list(self.request(filter, LIST_DEADLINE))).await;
        self.record(call, &answer, |list| {
            format!("{} machines, revision {:?}", list.machines.len(), shown_cursor(&list.revision))
        });
        answer
    }

    /// Whether the target says that it is ready (`grpc.health.v1`).
    pub async fn is_ready(&self) -> Result<bool, Status> {
        let service = "bigfleet.v1alpha1.CapacityProvider".to_owned();
        let channel = self.channel("").map_err(|error| Status::unavailable(error.to_string()))?;
        let mut client = HealthClient::new(channel);
        let request = self.request(HealthCheckRequest { service }, CALL_DEADLINE);
        let answer = self.within(CALL_DEADLINE, client.check(request)).await;
        self.record("Health.Check".to_owned(), &answer, |health| {
            format!("status {}", health.status)
        });
        answer.map(|health| health.status == 1)
    }
}

fn shown_cursor(cursor: &[u8]) -> String {
    String::from_utf8_lossy(cursor).chars().take(60).collect()
}

fn shown_ack(ack: &TransitionAck) -> String {
    let machine = ack.machine.as_ref().map_or_else(|| "no machine".to_owned(), shown_machine);
    format!("{} {machine}", ack.operation_id)
}

fn shown_machine(machine: &Machine) -> String {
    let mut text = state_name(machine.state);
    if let Some(host) = &machine.host {
        text.push_str(&format!(" host {}/{}", host.provider, host.r#ref));
    }
    if !machine.cluster.is_empty() || !machine.shard_metadata.is_empty() {
        text.push_str(&format!(
            " cluster {:?} with {} keys",
            machine.cluster,
            machine.shard_metadata.len()
        ));
    }
    if !machine.last_error.is_empty() {
        text.push_str(&format!(" error {:?}", machine.last_error));
    }
    text
}
