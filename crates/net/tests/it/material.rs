//! Every way in which TLS flags and files can be wrong at the start.

use std::{fs, path::PathBuf};

use bigfleet_net::{flags::TlsFlags, identity::Identity, rule::Rule, tls::Security};
use bigfleet_testkit::pki::{LOOPBACK, Material, Pki};

fn flags(material: &Material) -> TlsFlags {
    TlsFlags {
        tls_cert: Some(material.cert()),
        tls_key: Some(material.key()),
        tls_ca: Some(material.ca()),
        require_tls: false,
    }
}

fn refusal(flags: &TlsFlags) -> String {
    flags.load().map(|_| ()).unwrap_err().to_string()
}

fn shard() -> Material {
    Pki::new().unwrap().material(&["bigfleet://shard/s"]).unwrap()
}

#[test]
fn all_three_flags_are_mtls_and_none_is_plaintext() {
    let material = shard();
    assert!(matches!(flags(&material).load(), Ok(Security::Mtls(_))));
    assert!(matches!(TlsFlags::default().load(), Ok(Security::Plaintext)));
    let empty = TlsFlags {
        tls_cert: Some(PathBuf::new()),
        tls_key: Some(PathBuf::new()),
        tls_ca: Some(PathBuf::new()),
        require_tls: false,
    };
    assert!(matches!(empty.load(), Ok(Security::Plaintext)));
}

#[test]
fn a_partial_set_names_what_is_missing() {
    let material = shard();
    let names = ["--tls-cert", "--tls-key", "--tls-ca"];
    for set in 1..7 {
        let mut flags = flags(&material);
        let given = [set & 1 != 0, set & 2 != 0, set & 4 != 0];
        let paths = [&mut flags.tls_cert, &mut flags.tls_key, &mut flags.tls_ca];
        for (path, given) in paths.into_iter().zip(given) {
            if !given {
                *path = None;
            }
        }
        let missing: Vec<_> = names
            .into_iter()
            .zip(given)
            .filter(|(_, given)| !given)
            .map(|(name, _)| name)
            .collect();
        let expected = format!("incomplete TLS flags: {} missing;", missing.join(" and "));
        assert!(refusal(&flags).starts_with(&expected), "{}", refusal(&flags));
    }
}

#[test]
fn require_tls_refuses_plaintext_only() {
    let none = TlsFlags { require_tls: true, ..TlsFlags::default() };
    assert!(refusal(&none).contains("--require-tls forbids plaintext"));
    let material = shard();
    TlsFlags { require_tls: true, ..flags(&material) }.load().unwrap();
}

#[test]
fn each_missing_empty_or_garbled_file_is_named() {
    let texts = [
        (None, ["No such file", "No such file", "No such file"]),
        (Some(""), ["holds no certificate", "holds no private key", "holds no certificate"]),
        (Some("garbage"), ["holds no certificate", "holds no private key", "holds no certificate"]),
        (
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n"),
            ["is cut short", "is cut short", "is cut short"],
        ),
        (
            Some("-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n"),
            ["not valid PEM", "not valid PEM", "not valid PEM"],
        ),
        (
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            ["cannot be read", "holds no private key", "cannot be read"],
        ),
        (
            Some("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
            ["holds no certificate", "no usable private key", "holds no certificate"],
        ),
    ];
    for (text, problems) in texts {
        for (which, problem) in problems.into_iter().enumerate() {
            let material = shard();
            let path = [material.cert(), material.key(), material.ca()][which].clone();
            match text {
                Some(text) => fs::write(&path, text).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            let refusal = refusal(&flags(&material));
            assert!(refusal.starts_with(&path.display().to_string()), "{text:?}: {refusal}");
            assert!(refusal.contains(problem), "{text:?}: {refusal}");
            assert!(!refusal.contains("AAAA") && !refusal.contains("!!!!"), "{refusal}");
        }
    }
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let pki = Pki::new().unwrap();
    let material = pki.material(&["bigfleet://admin"]).unwrap();
    fs::write(material.key(), pki.issue(&[], LOOPBACK).unwrap().key_pem).unwrap();
    let refusal = refusal(&flags(&material));
    let expected = format!("it is not the key of {}", material.cert().display());
    assert!(refusal.contains(&expected), "{refusal}");
}

#[test]
fn own_identity_must_be_the_one_the_flags_imply() {
    let shard = Rule::exactly(Identity::Shard("s".into()));
    let pki = Pki::new().unwrap();
    let check = |identities: &[&str], rule: &Rule| {
        let material = pki.material(identities).unwrap();
        flags(&material).load().unwrap().check_own_identity(rule).map_err(|e| e.to_string())
    };
    check(&["bigfleet://shard/s"], &shard).unwrap();
    check(&["bigfleet://coordinator/node-1"], &Rule::coordinators()).unwrap();
    Security::Plaintext.check_own_identity(&shard).unwrap();
    for (identities, presented) in [
        (&["bigfleet://shard/t"][..], "carries bigfleet://shard/t"),
        (&["bigfleet://shard/S"], "carries bigfleet://shard/S"),
        (&["bigfleet://admin"], "carries bigfleet://admin"),
        (&[], "carries no identity"),
        (&["bigfleet://shard/s", "bigfleet://admin"], "2 bigfleet:// URI SANs"),
    ] {
        let refusal = check(identities, &shard).unwrap_err();
        assert!(refusal.contains("must carry bigfleet://shard/s,"), "{refusal}");
        assert!(refusal.contains(presented), "{refusal}");
    }
}

#[test]
fn debug_output_shows_no_key() {
    let material = shard();
    let key = fs::read_to_string(material.key()).unwrap();
    let shown = format!("{:?}", flags(&material).load().unwrap());
    assert!(key.lines().all(|line| !shown.contains(line)), "{shown}");
}
