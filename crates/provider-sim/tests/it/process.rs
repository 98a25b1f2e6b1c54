//! The binary.

use std::{process::Stdio, time::Duration};

use bigfleet_net::flags::TlsFlags;
use bigfleet_wire::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineRef,
    MachineState,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::{sleep, timeout},
};

use crate::{
    admin::post,
    rig::{Client, connect},
};

const DEADLINE: Duration = Duration::from_secs(60);

struct Process {
    child: Child,
    client: Client,
    admin: String,
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet-provider-sim"));
    command
        .args(["--addr=127.0.0.1:0", "--metrics-addr=0"])
        .args(args)
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Boots it on ports that the system chooses and its log tells.
async fn boot(args: &[&str]) -> Process {
    let mut child = command(&["--admin-addr=127.0.0.1:0"]).args(args).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (mut seen, mut admin) = (String::new(), String::new());
    let addr = timeout(DEADLINE, async {
        loop {
            let line = lines.next_line().await.unwrap().unwrap_or_else(|| panic!("ended:\n{seen}"));
            seen.push_str(&line);
            seen.push('\n');
            let addr = line.rsplit_once("addr=").map(|(_, addr)| addr.trim().to_owned());
            match addr {
                Some(addr) if line.contains("admin calls") => admin = addr,
                Some(addr) if line.contains("serving gRPC") => return addr,
                _ => {}
            }
        }
    });
    let addr = addr.await.unwrap();
    // Its log must not fill the pipe.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let client = connect(&addr, &TlsFlags::default().load().unwrap());
    Process { child, client, admin }
}

impl Process {
    async fn reaches(&mut self, id: &str, state: MachineState) -> Machine {
        let reached = async {
            loop {
                let machine = self.client.get(MachineRef { id: id.into() }).await.unwrap();
                let machine = machine.into_inner();
                if machine.state() == state {
                    return machine;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(DEADLINE, reached).await.unwrap_or_else(|_| panic!("{id} never {state:?}"))
    }

    async fn create(&mut self, id: &str) {
        let request = CreateRequest { machine_id: id.into(), ..Default::default() };
        self.client.create(request).await.unwrap();
    }

    async fn configure(&mut self, id: &str, cluster: &str) {
        let request = ConfigureRequest {
            machine_id: id.into(),
            cluster_id: cluster.into(),
            bootstrap_blob: b"join".to_vec(),
            ..Default::default()
        };
        self.client.configure(request).await.unwrap();
    }

    async fn list(&mut self) -> Vec<Machine> {
        self.client.list(ListFilter::default()).await.unwrap().into_inner().machines
    }
}

#[tokio::test]
async fn a_machine_walks_over_grpc() {
    let mut process = boot(&[]).await;
    assert_eq!(process.list().await.len(), 120);
    let id = "beta-ondemand-007";
    process.create(id).await;
    let idle = process.reaches(id, MachineState::Idle).await;
    assert_eq!(idle.host.unwrap().provider, "sim");
    process.configure(id, "c-1").await;
    assert_eq!(process.reaches(id, MachineState::Configured).await.cluster, "c-1");
    let drain = DrainRequest { machine_id: id.into(), ..Default::default() };
    process.client.drain(drain).await.unwrap();
    process.reaches(id, MachineState::Idle).await;
    let delete = DeleteRequest { machine_id: id.into(), ..Default::default() };
    process.client.delete(delete).await.unwrap();
    assert_eq!(process.reaches(id, MachineState::Speculative).await.host, None);

    let answer = post(&process.admin, "/interrupt", r#"{"machines": ["metal-owned-003"]}"#).await;
    assert_eq!((answer.0, answer.1["hosts"].as_u64()), (200, Some(1)));
    let noticed = async {
        loop {
            let machine = process.client.get(MachineRef { id: "metal-owned-003".into() }).await;
            if machine.unwrap().into_inner().interruption_probability == 0.99 {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(DEADLINE, noticed).await.unwrap();
    let answer = post(&process.admin, "/stock", r#"{"zone": "west-a", "count": 0}"#).await;
    assert_eq!((answer.0, answer.1["pools"].as_u64()), (200, Some(1)));
    process.create("beta-spot-000").await;
    let short = process.reaches("beta-spot-000", MachineState::Failed).await;
    assert!(short.last_error.contains("out of stock"), "{short:?}");
}

#[tokio::test]
async fn machines_and_hosts_outlive_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("--state={}", directory.path().display());
    // The second sweep after a loss is the one that believes it.
    let args = [state.as_str(), "--sweep-interval=200ms"];
    let mut process = boot(&args).await;
    process.create("alpha-ondemand-001").await;
    process.reaches("alpha-ondemand-001", MachineState::Idle).await;
    process.configure("alpha-ondemand-001", "c-1").await;
    let before = process.reaches("alpha-ondemand-001", MachineState::Configured).await;
    let locked = command(&["--admin-addr=0", &state]).output().await.unwrap();
    assert_eq!(locked.status.code(), Some(1), "one process a directory");
    process.child.kill().await.unwrap();

    let mut process = boot(&args).await;
    assert_eq!(process.list().await.len(), 120);
    let kill = r#"{"machines": ["metal-owned-000"]}"#;
    assert_eq!(post(&process.admin, "/kill", kill).await.0, 200);
    // So many sweeps that lost hosts are told from kept ones.
    process.reaches("metal-owned-000", MachineState::Failed).await;
    let after = process.reaches("alpha-ondemand-001", MachineState::Configured).await;
    assert_eq!(before, after);
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("clouds.yaml");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    let config = format!("--config={}", file.display());
    let ends = async |args: &[&str], code: i32, says: &str| {
        let ended = timeout(DEADLINE, command(args).output()).await.unwrap().unwrap();
        let errors = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(code), "{args:?}: {errors}");
        assert!(errors.contains(says), "{args:?}: {errors}");
    };
    ends(&["--admin-addr=:9091"], 1, "--admin-addr: :9091 is not loopback").await;
    ends(&["--latency=quick"], 2, "--latency").await;
    ends(&["--wrong"], 2, "--wrong").await;
    write("clouds: [{name: a, regions: [], tiers: []}]");
    ends(&[&config, "--admin-addr=0"], 1, "clouds.yaml: clouds[0].regions: no zone").await;
    write("clouds: [{name: a, regions: [{name: r, zones: [{name: z, racks: many}]}], tiers: []}]");
    ends(&[&config], 1, "clouds[0].regions[0].zones[0].racks: ").await;
}

const MARKER: &str = "join-secret-41c9";

/// At the most talkative level, the transport's own lines included.
#[tokio::test]
async fn the_blob_is_in_no_log_line_and_in_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("--state={}", directory.path().display());
    let transport = ["h2", "hyper", "hyper_util", "rustls", "tonic", "tower"];
    let levels = transport.map(|name| format!("{name}=trace")).join(",");
    let log = directory.path().join("log");
    let level = format!("--log-level=trace,{levels}");
    let child = command(&["--admin-addr=0", "--use-fake-backend", &state, &level])
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let serves = async {
        loop {
            let text = std::fs::read_to_string(&log).unwrap();
            let line = text.lines().find(|line| line.contains("serving gRPC"));
            match line.and_then(|line| line.rsplit_once("addr=")) {
                Some((_, addr)) => return addr.trim().to_owned(),
                None => sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let addr = timeout(DEADLINE, serves).await.unwrap();
    let client = connect(&addr, &TlsFlags::default().load().unwrap());
    let (idle, admin) = ("sim-spec-000", String::new());
    let mut process = Process { child, client, admin };
    process.create(idle).await;
    process.reaches(idle, MachineState::Idle).await;
    let request = ConfigureRequest {
        machine_id: idle.into(),
        cluster_id: "c-1".into(),
        bootstrap_blob: MARKER.into(),
        ..Default::default()
    };
    process.client.configure(request).await.unwrap();
    process.reaches(idle, MachineState::Configured).await;
    process.child.kill().await.unwrap();
    let mut files = 0;
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes());
            assert!(!found, "{} holds the blob", path.display());
            files += 1;
        }
    }
    assert!(files > 1 && std::fs::metadata(&log).unwrap().len() > 1000, "it talks");
}
