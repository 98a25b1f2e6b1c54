//! Replicas known by names. What names mean is said by a file that takes the place of
//! `/etc/hosts` for each process alone.

use std::{fs, path::Path};

use bigfleet_testkit::pki::Material;

use crate::{
    client::Client,
    fleet::{Fleet, REPLICAS, security},
    rig::{binaries::bigfleet, ports::port, process::Process},
};

/// Whether this machine lets a process have files of its own; says so if not.
pub(crate) async fn possible() -> bool {
    let namespaces = tokio::process::Command::new("unshare").args(["-r", "-m", "true"]).status();
    let possible = namespaces.await.is_ok_and(|status| status.success());
    if !possible {
        eprintln!("skipped: names are given other addresses in a namespace; allow `unshare -rm`");
    }
    possible
}

/// A fleet whose replicas dial names.
pub(crate) struct Named {
    pub(crate) fleet: Fleet,
    materials: Vec<Material>,
    /// gRPC, consensus, HTTP; the same at every host.
    pub(crate) ports: [u16; 3],
}

impl Named {
    /// With certificates for these hosts, besides the names.
    pub(crate) fn new(fleet: Fleet, hosts: impl Fn(usize) -> Vec<String>) -> Self {
        let materials = (0..REPLICAS).map(|replica| {
            let mut hosts = hosts(replica);
            hosts.extend([format!("c-{replica}"), "coordinators".to_owned()]);
            let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
            let identity = format!("bigfleet://coordinator/c-{replica}");
            let leaf = fleet.pki.issue(&[&identity], &hosts).unwrap();
            Material::write(&leaf, &fleet.pki.ca_pem()).unwrap()
        });
        let materials = materials.collect();
        let number = |addr: String| addr.rsplit_once(':').unwrap().1.parse().unwrap();
        Self { materials, fleet, ports: std::array::from_fn(|_| number(port())) }
    }

    /// Starts a replica at a host, to whom `names` say where each replica is.
    pub(crate) fn start(&mut self, replica: usize, host: &str, names: impl Fn(usize) -> String) {
        let hosts: String =
            (0..REPLICAS).map(|one| format!("{} c-{one} coordinators\n", names(one))).collect();
        let file = self.fleet.path(&format!("hosts-{replica}"));
        fs::write(&file, format!("127.0.0.1 localhost\n{hosts}")).unwrap();
        let ([grpc, raft, http], material) = (self.ports, &self.materials[replica]);
        self.fleet.places[replica].http = format!("{host}:{http}");
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

    /// A client of the replicas at these hosts.
    pub(crate) fn client(&self, hosts: impl Fn(usize) -> String) -> Client {
        let at = |replica| format!("{}:{}", hosts(replica), self.ports[0]);
        Client::new((0..REPLICAS).map(at), &security(&self.fleet.admin))
    }
}
