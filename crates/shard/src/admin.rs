//! `ShardAdmin`: stop a shard's hands without a restart and without the
//! coordinator (wire chapter §5.2).

use std::sync::Arc;

use bigfleet_net::{
    peer::{Gate, Peer},
    rule::Rule,
};
use bigfleet_wire::v1alpha1::{
    ActuationMode, ActuationState, GetActuationRequest, SetActuationRequest,
    shard_admin_server::ShardAdmin,
};
use tonic::{Request, Response, Status};

use crate::actuation::{Actuation, Mode, State};

/// Longest reason, in bytes.
const MAX_REASON: usize = 256;

/// The service.
#[derive(Clone, Debug)]
pub struct Admin {
    actuation: Arc<Actuation>,
    gate: Gate,
}

impl Admin {
    /// Serves this switch; `gate` counts who was turned away.
    #[must_use]
    pub const fn new(actuation: Arc<Actuation>, gate: Gate) -> Self {
        Self { actuation, gate }
    }
}

#[tonic::async_trait]
impl ShardAdmin for Admin {
    async fn set_actuation(
        &self,
        request: Request<SetActuationRequest>,
    ) -> Result<Response<ActuationState>, Status> {
        self.gate.admit_or_loopback(&request, &Rule::admin())?;
        let set_by = caller(Peer::of(&request));
        let SetActuationRequest { mode, reason } = request.into_inner();
        let mode = mode_of(mode)?;
        check_reason(&reason)?;
        let actuation = self.actuation.clone();
        // A disk may be slow. The task goes on if the caller does not wait: a brake
        // that was pulled is pulled.
        let set = tokio::task::spawn_blocking(move || actuation.set(mode, &reason, &set_by));
        let state = set.await.map_err(|error| Status::internal(error.to_string()))?;
        let state = state.map_err(|error| Status::internal(error.to_string()))?;
        Ok(Response::new(state.into()))
    }

    async fn get_actuation(
        &self,
        request: Request<GetActuationRequest>,
    ) -> Result<Response<ActuationState>, Status> {
        self.gate.admit(&request, &Rule::readers())?;
        Ok(Response::new(self.actuation.state().into()))
    }
}

fn mode_of(number: i32) -> Result<Mode, Status> {
    match ActuationMode::try_from(number) {
        Ok(ActuationMode::Active) => Ok(Mode::Active),
        Ok(ActuationMode::Paused) => Ok(Mode::Paused),
        Ok(ActuationMode::DryRun) => Ok(Mode::DryRun),
        Ok(ActuationMode::Unspecified) | Err(_) => Err(Status::invalid_argument(format!(
            "mode: {number} is none; set ACTUATION_MODE_ACTIVE, ACTUATION_MODE_PAUSED or \
             ACTUATION_MODE_DRY_RUN"
        ))),
    }
}

fn check_reason(reason: &str) -> Result<(), Status> {
    match reason.len() {
        0 => {
            Err(Status::invalid_argument("reason: empty; say why, for whoever reads the audit log"))
        }
        1..=MAX_REASON => Ok(()),
        bytes => Err(Status::invalid_argument(format!(
            "reason: {bytes} bytes; shorten it to {MAX_REASON}"
        ))),
    }
}

/// The identity, or on a plaintext transport where the call came from.
fn caller(peer: Option<&Peer>) -> String {
    match peer {
        Some(peer) => peer
            .identity()
            .map_or_else(|| format!("plaintext {}", peer.addr()), ToString::to_string),
        None => String::new(),
    }
}

impl From<State> for ActuationState {
    fn from(state: State) -> Self {
        Self {
            mode: wire(state.mode).into(),
            requested_mode: wire(state.set_mode).into(),
            since_unix_nanos: i64::try_from(state.since.as_nanosecond()).unwrap_or(i64::MAX),
            reason: state.reason,
            set_by: state.set_by,
            forced_by: state.forced_by.map_or("", |forced_by| forced_by.label()).to_owned(),
        }
    }
}

const fn wire(mode: Mode) -> ActuationMode {
    match mode {
        Mode::Active => ActuationMode::Active,
        Mode::Paused => ActuationMode::Paused,
        Mode::DryRun => ActuationMode::DryRun,
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_net::{identity::Identity, peer::Transport};
    use tonic::Code;

    use super::*;
    use crate::{
        audit::{Audit, Filter, Start},
        metrics::Metrics,
        options::ActuationOptions,
    };

    struct Rig {
        admin: Admin,
        audit: Arc<Audit>,
        metrics: Metrics,
    }

    impl Rig {
        fn new() -> Self {
            let metrics = Metrics::default();
            let audit = Arc::new(Audit::open(1, None, &metrics).unwrap());
            let options = ActuationOptions::default();
            let actuation = Actuation::open(None, options, audit.clone(), &metrics).unwrap();
            let gate = Gate::new(metrics.session_identity_rejected.clone());
            Self { admin: Admin::new(actuation.into(), gate), audit, metrics }
        }

        async fn set(
            &self,
            (addr, transport): (&str, Transport),
            mode: ActuationMode,
            reason: &str,
        ) -> Result<ActuationState, Status> {
            let request = SetActuationRequest { mode: mode.into(), reason: reason.to_owned() };
            let request = with_peer(request, addr, transport);
            self.admin.set_actuation(request).await.map(Response::into_inner)
        }
    }

    fn with_peer<T>(message: T, addr: &str, transport: Transport) -> Request<T> {
        let mut request = Request::new(message);
        request.extensions_mut().insert(Peer::new(addr.parse().unwrap(), transport));
        request
    }

    fn admin() -> (&'static str, Transport) {
        ("10.0.0.1:1", Transport::Mtls(Ok(Identity::Admin)))
    }

    #[tokio::test]
    async fn a_set_mode_is_in_force_on_the_gauge_and_in_the_audit() {
        let rig = Rig::new();
        let mut records = rig.audit.subscribe(Start::Now, Filter::default());
        let set = rig.set(admin(), ActuationMode::Paused, "incident 12").await.unwrap();
        assert_eq!(
            (set.mode(), set.requested_mode()),
            (ActuationMode::Paused, ActuationMode::Paused)
        );
        assert_eq!((&*set.reason, &*set.set_by), ("incident 12", "bigfleet://admin"));
        assert!(set.since_unix_nanos > 0 && set.forced_by.is_empty());
        assert_eq!(rig.metrics.actuation_paused.get(), 1);
        let record = records.next().await.unwrap().record;
        assert_eq!((&*record.kind, &*record.outcome), ("SetActuation", "paused"));
        assert_eq!((&*record.reason, &*record.set_by), ("incident 12", "bigfleet://admin"));

        let reader = Transport::Mtls(Ok(Identity::Readonly));
        let request = with_peer(GetActuationRequest {}, "10.0.0.1:1", reader);
        assert_eq!(rig.admin.get_actuation(request).await.unwrap().into_inner(), set);
    }

    #[tokio::test]
    async fn only_admins_and_this_machine_pull_the_brake() {
        let rig = Rig::new();
        let reader = Transport::Mtls(Ok(Identity::Readonly));
        let shard = Transport::Mtls(Ok(Identity::Shard("a".into())));
        for (addr, transport, admitted) in [
            ("10.0.0.1:1", Transport::Plaintext, false),
            ("127.0.0.1:1", Transport::Plaintext, true),
            ("127.0.0.1:1", reader, false),
            ("10.0.0.1:1", shard.clone(), false),
        ] {
            let set = rig.set((addr, transport), ActuationMode::DryRun, "x").await;
            match admitted {
                true => assert_eq!(set.unwrap().set_by, format!("plaintext {addr}")),
                false => assert_eq!(set.unwrap_err().code(), Code::PermissionDenied, "{addr}"),
            }
        }
        let request = with_peer(GetActuationRequest {}, "10.0.0.1:1", shard);
        let refused = rig.admin.get_actuation(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        assert_eq!(rig.metrics.session_identity_rejected.get(), 4);
    }

    #[tokio::test]
    async fn refuses_what_nobody_could_explain_later() {
        let rig = Rig::new();
        let long = "x".repeat(257);
        for (mode, reason, field) in [
            (ActuationMode::Unspecified, "x", "mode"),
            (ActuationMode::Paused, "", "reason"),
            (ActuationMode::Paused, &*long, "reason"),
        ] {
            let refused = rig.set(admin(), mode, reason).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument);
            assert!(refused.message().starts_with(field), "{refused}");
        }
        let request = SetActuationRequest { mode: 4, reason: "x".into() };
        let (addr, transport) = admin();
        let unknown = rig.admin.set_actuation(with_peer(request, addr, transport)).await;
        assert_eq!(unknown.unwrap_err().code(), Code::InvalidArgument);
        rig.set(admin(), ActuationMode::Paused, &long[1..]).await.unwrap();
    }
}
