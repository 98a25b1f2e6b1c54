//! The provider of a load: large machines, most of them owned and idle, on the wire.

use bigfleet_model::{CapacityType, MachineState};
use bigfleet_net::{grpc::GrpcServer, readiness::Readiness, shutdown::Shutdown, tls::Security};
use bigfleet_provider::Adapter;
use tokio::{
    net::TcpListener,
    time::{Duration, MissedTickBehavior, interval},
};

use crate::{
    bench::{
        make::{MachineSpec, Maker},
        random::Random,
        supply::Lean,
    },
    error::Error,
};

const ZONES: [&str; 4] = ["zone-a", "zone-b", "zone-c", "zone-d"];
const SEED: u64 = 66;

/// Serves so many machines on loopback; where.
pub(super) async fn serve(machines: usize) -> Result<String, Error> {
    let (lean, mut maker) = (Lean::default(), Maker::default());
    for i in 0..machines {
        let for_sale = i % 10 == 9;
        let made = maker.make(MachineSpec {
            id: format!("machine-{i:07}"),
            state: if for_sale { MachineState::Speculative } else { MachineState::Idle },
            instance_type: ["metal-512", "metal-256"][i / 4 % 2],
            zone: ZONES[i % ZONES.len()],
            capacity_type: if for_sale { CapacityType::OnDemand } else { CapacityType::BareMetal },
            price: if for_sale { 0.5 } else { 0.0 },
            size: [
                &[("cpu", "512"), ("memory", "8Ti")][..],
                &[("cpu", "256"), ("memory", "4Ti")][..],
            ][i / 4 % 2],
            rack: Some(format!("rack-{}", i / 4 % 100)),
            ..MachineSpec::default()
        });
        lean.add(made.machine);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let addr = listener.local_addr()?.to_string();
    let readiness = Readiness::new("it is not");
    readiness.set_ready();
    let server = GrpcServer::new(Security::Plaintext, readiness);
    let server = server.add_service(Adapter::new(lean.clone()).into_service());
    tokio::spawn(async move { server.serve(listener, Shutdown::new()).await });
    if machines > 0 {
        tokio::spawn(churn(lean, machines));
    }
    Ok(addr)
}

/// 2 % a minute.
async fn churn(lean: Lean, machines: usize) {
    let mut second = interval(Duration::from_secs(1));
    second.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut random = Random::new(SEED);
    loop {
        second.tick().await;
        lean.churn(&mut random, machines * 2 / 100 / 60);
    }
}
