//! Files that change under a running process.

use std::{fs, sync::Arc};

use bigfleet_net::tls::Security;
use bigfleet_testkit::pki::{LOOPBACK, Leaf, Material, Pki};
use rustls_pki_types::{CertificateDer, pem::PemObject};

use crate::{
    identity::{foreign_client, shake_hands},
    rig::{Rig, mtls},
};

fn der(leaf: &Leaf) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(leaf.cert_pem.as_bytes()).unwrap()
}

/// The leaf that the server presents to a new connection.
async fn presented(rig: &Rig, pki: &Pki) -> CertificateDer<'static> {
    let leaf = pki.issue(&["bigfleet://admin"], LOOPBACK).unwrap();
    let config = foreign_client(pki, Some(&leaf), &rustls::version::TLS13);
    let stream = shake_hands(rig, &Arc::new(config)).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

fn shard_leaf(pki: &Pki) -> Leaf {
    pki.issue(&["bigfleet://shard/s"], LOOPBACK).unwrap()
}

#[tokio::test]
async fn a_rotated_leaf_serves_the_next_handshake() {
    let pki = Pki::new().unwrap();
    let (old, new) = (shard_leaf(&pki), shard_leaf(&pki));
    let material = Material::write(&old, &pki.ca_pem()).unwrap();
    let rig = Rig::start(mtls(&material)).await;
    assert_eq!(presented(&rig, &pki).await, der(&old));
    material.replace_leaf(&new).unwrap();
    assert_eq!(presented(&rig, &pki).await, der(&new));
}

/// The way a Secret volume changes: all files at once, by a symlink.
#[tokio::test]
async fn a_rotation_by_symlink_is_seen() {
    let pki = Pki::new().unwrap();
    let (old, new) = (shard_leaf(&pki), shard_leaf(&pki));
    let first = Material::write(&old, &pki.ca_pem()).unwrap();
    let second = Material::write(&new, &pki.ca_pem()).unwrap();
    let volume = tempfile::tempdir().unwrap();
    let at = |name: &str| volume.path().join(name);
    std::os::unix::fs::symlink(first.dir(), at("..data")).unwrap();
    for name in ["tls.crt", "tls.key", "ca.crt"] {
        std::os::unix::fs::symlink(format!("..data/{name}"), at(name)).unwrap();
    }
    let tls = bigfleet_net::tls::Tls::load(&at("tls.crt"), &at("tls.key"), &at("ca.crt")).unwrap();
    let rig = Rig::start(Security::Mtls(Arc::new(tls))).await;
    assert_eq!(presented(&rig, &pki).await, der(&old));
    std::os::unix::fs::symlink(second.dir(), at("..data_tmp")).unwrap();
    fs::rename(at("..data_tmp"), at("..data")).unwrap();
    assert_eq!(presented(&rig, &pki).await, der(&new));
}

#[tokio::test]
async fn a_half_done_rotation_keeps_the_last_pair_and_heals() {
    let pki = Pki::new().unwrap();
    let (old, new) = (shard_leaf(&pki), shard_leaf(&pki));
    let material = Material::write(&old, &pki.ca_pem()).unwrap();
    let rig = Rig::start(mtls(&material)).await;
    let half = &new.cert_pem[..new.cert_pem.len() / 2];
    // Cut short, without its key, without certificate, without key.
    let steps: [&dyn Fn(); 4] = [
        &|| fs::write(material.cert(), half).unwrap(),
        &|| fs::write(material.cert(), &new.cert_pem).unwrap(),
        &|| fs::remove_file(material.cert()).unwrap(),
        &|| fs::write(material.key(), "").unwrap(),
    ];
    for step in steps {
        step();
        assert_eq!(presented(&rig, &pki).await, der(&old));
    }
    material.replace_leaf(&new).unwrap();
    assert_eq!(presented(&rig, &pki).await, der(&new));
}

/// Same inode and size, and by the clock of the file system the same time.
#[tokio::test]
async fn a_rewrite_in_place_that_leaves_the_stamp_is_seen() {
    let pki = Pki::new().unwrap();
    let old = shard_leaf(&pki);
    // Signatures differ in length; take one of equal size.
    let new = std::iter::repeat_with(|| shard_leaf(&pki))
        .find(|new| {
            new.cert_pem.len() == old.cert_pem.len() && new.key_pem.len() == old.key_pem.len()
        })
        .unwrap();
    let material = Material::write(&old, &pki.ca_pem()).unwrap();
    let times = [material.cert(), material.key()]
        .map(|path| (fs::metadata(&path).unwrap().modified().unwrap(), path));
    let rig = Rig::start(mtls(&material)).await;
    assert_eq!(presented(&rig, &pki).await, der(&old));
    fs::write(material.cert(), &new.cert_pem).unwrap();
    fs::write(material.key(), &new.key_pem).unwrap();
    for (modified, path) in times {
        fs::File::options().append(true).open(path).unwrap().set_modified(modified).unwrap();
    }
    assert_eq!(presented(&rig, &pki).await, der(&new));
}

#[tokio::test]
async fn a_client_presents_its_rotated_leaf() {
    let pki = Pki::new().unwrap();
    let rig = Rig::start(mtls(&pki.material(&["bigfleet://shard/s"]).unwrap())).await;
    let material = pki.material(&["bigfleet://readonly"]).unwrap();
    let client = mtls(&material);
    assert_eq!(rig.whoami(&client).await.unwrap(), "bigfleet://readonly");
    material.replace_leaf(&pki.issue(&["bigfleet://admin"], LOOPBACK).unwrap()).unwrap();
    assert_eq!(rig.whoami(&client).await.unwrap(), "bigfleet://admin");
}

/// Add the new CA, reissue the leaves, remove the old CA; nobody restarts.
#[tokio::test]
async fn ca_roll() {
    let (old, new) = (Pki::new().unwrap(), Pki::new().unwrap());
    let server = old.material(&["bigfleet://shard/s"]).unwrap();
    let client = old.material(&["bigfleet://cluster/c"]).unwrap();
    let laggard = old.material(&["bigfleet://cluster/late"]).unwrap();
    let rig = Rig::start(mtls(&server)).await;
    let (client_side, laggard_side) = (mtls(&client), mtls(&laggard));
    let who = "bigfleet://cluster/c";
    assert_eq!(rig.whoami(&client_side).await.unwrap(), who);

    let both = old.ca_pem() + &new.ca_pem();
    for side in [&server, &client, &laggard] {
        side.replace_ca(&both).unwrap();
    }
    assert_eq!(rig.whoami(&client_side).await.unwrap(), who);

    client.replace_leaf(&new.issue(&[who], LOOPBACK).unwrap()).unwrap();
    assert_eq!(rig.whoami(&client_side).await.unwrap(), who);
    server.replace_leaf(&shard_leaf(&new)).unwrap();
    assert_eq!(rig.whoami(&client_side).await.unwrap(), who);
    assert_eq!(rig.whoami(&laggard_side).await.unwrap(), "bigfleet://cluster/late");

    for side in [&server, &client] {
        side.replace_ca(&new.ca_pem()).unwrap();
    }
    assert_eq!(rig.whoami(&client_side).await.unwrap(), who);
    rig.whoami(&laggard_side).await.unwrap_err();
}

#[tokio::test]
async fn a_half_written_ca_bundle_keeps_the_last_one_and_heals() {
    let (old, new) = (Pki::new().unwrap(), Pki::new().unwrap());
    let server = old.material(&["bigfleet://shard/s"]).unwrap();
    let rig = Rig::start(mtls(&server)).await;
    let both = old.ca_pem() + &new.ca_pem();
    let old_client = mtls(&old.material(&["bigfleet://cluster/old"]).unwrap());
    let leaf = new.issue(&["bigfleet://cluster/new"], LOOPBACK).unwrap();
    let new_client = mtls(&Material::write(&leaf, &both).unwrap());
    for broken in ["", "garbage", &new.ca_pem()[..100], &both[..both.len() - 100]] {
        fs::write(server.ca(), broken).unwrap();
        assert_eq!(rig.whoami(&old_client).await.unwrap(), "bigfleet://cluster/old");
        rig.whoami(&new_client).await.unwrap_err();
    }
    fs::remove_file(server.ca()).unwrap();
    assert_eq!(rig.whoami(&old_client).await.unwrap(), "bigfleet://cluster/old");
    fs::write(server.ca(), both).unwrap();
    assert_eq!(rig.whoami(&old_client).await.unwrap(), "bigfleet://cluster/old");
    assert_eq!(rig.whoami(&new_client).await.unwrap(), "bigfleet://cluster/new");
}
