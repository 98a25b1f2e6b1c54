use std::path::Path;

use super::*;

const FILE: &str = r#"
provider: metal-ams
defaults: {capacity_type: BARE_METAL, zone: ams1-r1, price_per_hour: 0}
hooks: {dir: /etc/bigfleet/hooks, timeout: 30m}   # power-on, power-off, install, drain, wipe, status
machines:
  - {id: r1-07, host: SN123, instance_type: ams-epyc-64, resources: {cpu: "64", memory: 256Gi},
     labels: {topology.bigfleet/rack: r1}, bmc: {address: 10.0.0.7, secret: bmc-r1}}
"#;

fn parse(text: &str) -> Result<Inventory, Wrong> {
    Inventory::parse(text, Path::new("/etc/bigfleet"))
}

#[test]
fn the_chapters_file_is_read() {
    let inventory = parse(FILE).unwrap();
    assert_eq!(inventory.provider, "metal-ams");
    assert_eq!(inventory.hooks_dir, Path::new("/etc/bigfleet/hooks"));
    assert_eq!(inventory.hook_timeout, Duration::from_secs(1800));
    let Entry { offer, bmc } = inventory.entry("r1-07").unwrap();
    assert_eq!(offer.host.as_deref(), Some("SN123"));
    assert_eq!((offer.zone.as_str(), offer.price_per_hour), ("ams1-r1", 0.0));
    assert_eq!(offer.resources["memory"], "256Gi");
    let bmc = bmc.as_ref().unwrap();
    assert_eq!((bmc.address.as_str(), bmc.secret.as_deref()), ("10.0.0.7", Some("bmc-r1")));
}

#[test]
fn a_machine_wins_over_the_defaults_and_numbers_are_quantities() {
    let text =
        FILE.replace("cpu: \"64\"", "cpu: 64").replace("host: SN123", "host: SN123, zone: z2");
    let inventory = parse(&text.replace("dir: /etc/bigfleet/hooks", "dir: mine")).unwrap();
    let offer = &inventory.machines["r1-07"].offer;
    assert_eq!((offer.zone.as_str(), offer.resources["cpu"].as_str()), ("z2", "64"));
    assert_eq!(inventory.hooks_dir, Path::new("/etc/bigfleet/mine"));
}

/// What is replaced, by what, and the path that the refusal names.
const WRONG: [(&str, &str, &str); 19] = [
    ("provider: metal-ams", "provider: a/b", "provider"),
    ("provider: metal-ams", "provider: [", "yaml"),
    ("provider: metal-ams", "providers: x", "providers"),
    ("timeout: 30m", "timeout: 30", "hooks.timeout"),
    ("timeout: 30m", "timeout: 0s", "hooks.timeout"),
    ("id: r1-07", "id: ''", "machines[0].id"),
    ("host: SN123, ", "", "machines[0]"),
    ("instance_type: ams-epyc-64, ", "", "machines[0].instance_type"),
    ("zone: ams1-r1, ", "", "machines[0].zone"),
    ("memory: 256Gi", "memory: lots", "machines[0].resources"),
    ("memory: 256Gi", "memory: true", "machines[0].resources.memory"),
    ("capacity_type: BARE_METAL", "capacity_type: SPOT", "machines[0].capacity_type"),
    ("labels: {", "labels: {zone: x, ", "machines[0].labels"),
    ("price_per_hour: 0", "price_per_hour: -1", "machines[0].price_per_hour"),
    ("address: 10.0.0.7", "adress: 10.0.0.7", "machines[0].bmc.adress"),
    ("bmc-r1}}", "bmc-r1}}\n  - {id: r1-07, host: SN9, instance_type: t}", "machines[1].id"),
    ("bmc-r1}}", "bmc-r1}}\n  - {id: r1-08, host: SN123, instance_type: t}", "machines[1].host"),
    ("bmc-r1}}", "bmc-r1}}\n  - {id: r1-08, host: '', instance_type: t}", "machines[1].host"),
    ("machines:", "more: 1\nmachines:", "more"),
];

#[test]
fn a_refusal_names_the_place() {
    for (old, new, path) in WRONG {
        let text = FILE.replace(old, new);
        assert_ne!(text, FILE, "{old}");
        let (named, problem) = parse(&text).expect_err(new);
        assert_eq!(named, path, "{new}: {problem}");
    }
    let list = FILE.find("  - {").unwrap();
    assert_eq!(
        parse(&FILE[..list].replace("machines:", "machines: []")).unwrap_err().0,
        "machines"
    );
}

#[test]
fn inline_secrets_are_refused_by_path_and_never_repeated() {
    let cases = [
        ("secret: bmc-r1", "password: hunter2", "machines[0].bmc.password"),
        ("secret: bmc-r1", "user_Password: hunter2", "machines[0].bmc.user_Password"),
        ("secret: bmc-r1", "secret: 'hunter2 !'", "machines[0].bmc.secret"),
        ("secret: bmc-r1", "secret: {value: hunter2}", "machines[0].bmc.secret"),
        ("address: 10.0.0.7", "address: root:hunter2@10.0.0.7", "machines[0].bmc.address"),
        ("bmc: {address: 10.0.0.7, secret: bmc-r1}", "bmc: hunter2", "machines[0].bmc"),
        ("labels: {", "labels: {bmc-password: hunter2, ", "machines[0].labels.bmc-password"),
        ("host: SN123", "host: 'http://u:hunter2@h'", "machines[0].host"),
        ("timeout: 30m", "timeout: 30m, token: hunter2", "hooks.token"),
        ("provider: metal-ams", "provider: metal-ams\nsecrets: {a: hunter2}", "secrets"),
    ];
    for (old, new, path) in cases {
        let (named, problem) = parse(&FILE.replace(old, new)).expect_err(new);
        assert_eq!(named, path, "{problem}");
        assert!(!problem.contains("hunter2"), "{problem}");
    }
    // A broken file is shown without its lines.
    let (_, problem) = parse(&FILE.replace("secret: bmc-r1}}", "password: hunter2")).unwrap_err();
    assert!(!problem.contains("hunter2"), "{problem}");
}

#[test]
fn what_never_changes_is_refused_and_what_left_is_remembered() {
    let old = parse(FILE).unwrap();
    for (old_text, new) in [
        ("provider: metal-ams", "provider: metal-fra"),
        ("SN123", "SN124"),
        ("ams-epyc-64", "ams-epyc-32"),
        ("zone: ams1-r1", "zone: ams1-r2"),
        ("BARE_METAL", "RESERVED"),
    ] {
        let new = parse(&FILE.replace(old_text, new)).unwrap();
        assert!(new.succeed(&old).is_err(), "{old_text}");
    }
    let without = parse(&FILE.replace("r1-07", "r1-08").replace("SN123", "SN124")).unwrap();
    let without = without.succeed(&old).unwrap();
    assert!(!without.machines.contains_key("r1-07"));
    assert_eq!(without.entry("r1-07"), old.entry("r1-07"));
    let again = old.succeed(&without).unwrap();
    assert!(again.departed.contains_key("r1-08") && !again.departed.contains_key("r1-07"));
}
