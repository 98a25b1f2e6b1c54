//! Everybody at once, and everybody elsewhere.

use std::{fs, path::Path};

use bigfleet_testkit::pki::Material;

use crate::{
    client::Client,
    fleet::{Fleet, Place, REPLICAS, security},
    rig::{
        binaries::bigfleet,
        ports::port,
        process::{Process, until},
    },
};

#[tokio::test]
async fn replicas_that_move_one_by_one_are_found() {
    let mut fleet = Fleet::open().await;
    fleet.client().write("kept").await.unwrap();
    let fleet_id = fleet.until_open().await;
    for replica in 0..REPLICAS {
        fleet.process(replica).signal("TERM").await;
        assert!(fleet.process(replica).ended().await.success());
        let id = fleet.places[replica].id.clone();
        fleet.places[replica] = Place { id, grpc: port(), raft: port(), http: port() };
        fleet.start(replica);
        assert_eq!(fleet.until_open().await, fleet_id);
    }
    assert_eq!(fleet.client().written().await.unwrap(), ["kept"]);
}

/// Replicas known by names, which mean other addresses after each restart. Names are
/// those of a file that takes the place of `/etc/hosts` for each process alone.
struct Named {
    fleet: Fleet,
    materials: Vec<Material>,
    ports: [u16; 3],
}

impl Named {
    /// Where a replica is in a generation of addresses.
    fn host(generation: usize, replica: usize) -> String {
        format!("127.0.{}.{}", generation + 1, replica + 1)
    }

    fn start(&mut self, generation: usize) {
        let hosts: String = (0..REPLICAS)
            .map(|replica| {
                format!("{} c-{replica} coordinators\n", Self::host(generation, replica))
            })
            .collect();
        let file = self.fleet.path("hosts");
        fs::write(&file, format!("127.0.0.1 localhost\n{hosts}")).unwrap();
        let [grpc, raft, http] = self.ports;
        for replica in 0..REPLICAS {
            let (host, material) = (Self::host(generation, replica), &self.materials[replica]);
            let more = [
                format!("--listen={host}:{grpc}"),
                format!("--raft-bind={host}:{raft}"),
                format!("--raft-advertise=c-{replica}:{raft}"),
                format!("--metrics-addr={host}:{http}"),
                format!("--join-addr=coordinators:{grpc}"),
                format!("--tls-cert={}", material.cert().display()),
                format!("--tls-key={}", material.key().display()),
            ];
            let more: Vec<&str> = more.iter().map(String::as_str).collect();
            let script = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
            let mut args: Vec<String> = ["-r", "-m", "sh", "-c", script].map(str::to_owned).into();
            args.push(file.display().to_string());
            args.push(bigfleet().display().to_string());
            args.extend(self.fleet.args(replica, &more));
            let log = self.fleet.log(replica);
            self.fleet.replicas[replica] = Some(Process::spawn(Path::new("unshare"), &args, &log));
        }
    }

    fn client(&self, generation: usize) -> Client {
        let at = |replica| format!("{}:{}", Self::host(generation, replica), self.ports[0]);
        Client::new((0..REPLICAS).map(at), &security(&self.fleet.admin))
    }
}

#[tokio::test]
async fn a_full_restart_with_all_addresses_changed_re_forms() {
    let namespaces = tokio::process::Command::new("unshare").args(["-r", "-m", "true"]).status();
    if !namespaces.await.is_ok_and(|status| status.success()) {
        eprintln!("skipped: names are given other addresses in a namespace; allow `unshare -rm`");
        return;
    }
    let fleet = Fleet::new();
    let hosts = |replica: usize| {
        let mut hosts = vec![format!("c-{replica}"), "coordinators".to_owned()];
        hosts.extend((0..3).map(|generation| Named::host(generation, replica)));
        hosts
    };
    let materials = (0..REPLICAS).map(|replica| {
        let hosts = hosts(replica);
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let identity = format!("bigfleet://coordinator/c-{replica}");
        let leaf = fleet.pki.issue(&[&identity], &hosts).unwrap();
        Material::write(&leaf, &fleet.pki.ca_pem()).unwrap()
    });
    let materials = materials.collect();
    let number = |addr: String| addr.rsplit_once(':').unwrap().1.parse().unwrap();
    let mut named = Named { materials, fleet, ports: std::array::from_fn(|_| number(port())) };
    let mut fleets = Vec::new();
    for generation in 0..3 {
        named.start(generation);
        let client = named.client(generation);
        let fleet_id = until("an open fleet", async || {
            for process in named.fleet.replicas.iter_mut().flatten() {
                assert!(process.is_running(), "{}", process.tail());
            }
            client.write(&format!("w-{generation}")).await.ok()?;
            client.status(0).await.ok().map(|status| status.fleet_id)
        })
        .await;
        fleets.push(fleet_id);
        let written = client.written().await.unwrap();
        assert_eq!(written, ["w-0", "w-1", "w-2"][..=generation]);
        for replica in 0..REPLICAS {
            named.fleet.kill(replica).await;
        }
    }
    fleets.dedup();
    assert_eq!(fleets.len(), 1, "{fleets:?}");
}
