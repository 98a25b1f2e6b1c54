//! Neither a join secret nor a credential is in any line of the log or any file, at the
//! most talkative level.

use base64::{Engine, engine::general_purpose::STANDARD};
use bigfleet_provider_ec2::standin;

use crate::rig::{Rig, SLOT, sound};

const MARKER: &str = "join-secret-8d1f-of-cluster-one";

#[tokio::test(flavor = "multi_thread")]
async fn no_log_and_no_file_holds_a_secret() {
    let mut rig = Rig::new(&sound()).await;
    let transport = ["h2", "hyper", "hyper_util", "rustls", "tonic", "tower"];
    let levels = transport.map(|name| format!("{name}=trace")).join(",");
    rig.flags.push(format!("--log-level=trace,{levels}"));
    rig.start().await;
    rig.bring(SLOT).await;
    rig.configure(SLOT, "c-1", MARKER.as_bytes()).await.unwrap();
    rig.reaches(SLOT, bigfleet_wire::v1alpha1::MachineState::Configured).await;
    rig.kill().await;
    let log = std::fs::read(rig.log()).unwrap();
    assert!(log.len() > 1000, "it talks");
    let credentials = standin::credentials();
    let secrets = [MARKER.to_owned(), STANDARD.encode(MARKER), credentials.secret_key];
    let mut files = vec![log];
    for directory in [rig.directory.path().to_owned(), rig.directory.path().join("state")] {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                files.push(std::fs::read(path).unwrap());
            }
        }
    }
    for secret in secrets {
        for bytes in &files {
            let text = String::from_utf8_lossy(bytes);
            assert!(!text.contains(&secret), "a secret is written down");
        }
    }
}
