use std::process::Command;

use crate::rig::{BINARY, Rig};

fn refusal(command: &mut Command) -> (Option<i32>, String) {
    let output = command.stderr(std::process::Stdio::piped()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_wrong_start_says_where_and_what_to_do() {
    let (code, text) = refusal(&mut Command::new(BINARY));
    assert_eq!(code, Some(2));
    assert!(text.contains("give --inventory FILE"), "{text}");

    let rig = Rig::new();
    rig.write_inventory("provider: p\nhooks: {dir: nowhere}\nmachines: [{id: a, host: b, instance_type: t, zone: z}]");
    let (code, text) = refusal(&mut rig.command());
    assert_eq!(code, Some(2));
    assert!(
        text.contains("inventory.yaml: hooks.dir: ") && text.contains("nowhere/install"),
        "{text}"
    );

    rig.inventory(&["m-1"]);
    let (code, text) = refusal(rig.command().arg("--provider=other"));
    assert_eq!(code, Some(2));
    assert!(text.contains("\"other\" is not the inventory's \"metal-test\""), "{text}");

    std::fs::remove_file(rig.path("hooks/status")).unwrap();
    let (code, text) = refusal(rig.command().args(["--addr=127.0.0.1:0", "--metrics-addr=0"]));
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("--allow-ungated-configure"), "{text}");
}
