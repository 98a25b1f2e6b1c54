use std::{fs, path::PathBuf};

use bigfleet_provider_kit::{OperationId, ShapeCheck};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::*;

const BLOB: &[u8] = b"kubeadm join --token marker-5c3e8a21";
const MINUTE: Duration = Duration::from_secs(60);

/// A machine, its hooks and its spool.
struct Bench {
    root: TempDir,
    inventory: Arc<Inventory>,
    machine: Machine,
    op: Op,
    hooks: Hooks,
}

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let text = r#"
provider: p
hooks: {dir: hooks}
machines:
  - {id: m, host: SN1, zone: z, instance_type: t, labels: {a: b}, bmc: {address: h, secret: s}}
"#;
        let inventory = Inventory::parse(text, root.path()).unwrap();
        fs::create_dir(root.path().join("hooks")).unwrap();
        let mut machine = ShapeCheck::new("p").machine(&inventory.machines["m"].offer).unwrap();
        machine.cluster = Some("c-1".into());
        let op = Op {
            id: OperationId::parse("op-1").unwrap(),
            deadline: Instant::now() + MINUTE,
            cancelled: CancellationToken::new(),
            attempt: 2,
        };
        let hooks = Hooks { spool: Spool::open(&root.path().join("blobs")).unwrap() };
        Self { root, inventory: Arc::new(inventory), machine, op, hooks }
    }

    /// Scripts see `$OUT`, a path that the test reads.
    fn script(&self, hook: Hook, body: &str) {
        let path = self.root.path().join("hooks").join(hook.name());
        let text = format!("#!/bin/sh\nOUT='{}'\n{body}\n", self.out().display());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn out(&self) -> PathBuf {
        self.root.path().join("out")
    }

    fn said(&self) -> String {
        fs::read_to_string(self.out()).unwrap_or_default()
    }

    async fn run(&self, hook: Hook, limit: Duration, blob: Option<&[u8]>) -> Ran {
        let errand = Errand {
            op: &self.op,
            kind: "configure",
            machine: &self.machine,
            inventory: self.inventory.clone(),
            grace: Some(Duration::from_secs(7)),
        };
        loop {
            match self.hooks.run(hook, &errand, limit, blob).await {
                // Another test forked while this one wrote its script.
                Ran::Again(problem) if problem.contains("busy") => sleep(LOOK).await,
                ran => return ran,
            }
        }
    }

    fn blobs(&self) -> usize {
        fs::read_dir(self.hooks.spool.directory()).unwrap().count() - 1
    }
}

const LOOK: Duration = Duration::from_millis(5);

/// Waits for the world to look so.
async fn until(mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + MINUTE;
    while !holds() {
        assert!(Instant::now() < end, "it does not come about");
        sleep(LOOK).await;
    }
}

fn alive(pid: &str) -> bool {
    // A zombie does not run any more.
    let status = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[tokio::test]
async fn a_hook_learns_what_it_needs() {
    let bench = Bench::new();
    bench.script(
        Hook::Install,
        r#"cat >"$OUT"; stat -c %a "$BF_BLOB" >>"$OUT"; cat "$BF_BLOB" >>"$OUT""#,
    );
    assert_eq!(bench.run(Hook::Install, MINUTE, Some(BLOB)).await, Ran::Done);
    let said = bench.said();
    let (input, rest) = said.split_once("600\n").unwrap();
    assert_eq!(rest.as_bytes(), BLOB);
    let input: serde_json::Value = serde_json::from_str(input).unwrap();
    let expected = serde_json::json!({
        "machine": {
            "id": "m", "host": "SN1", "instance_type": "t", "zone": "z", "labels": {"a": "b"},
            "bmc": {"address": "h", "secret": "s"},
        },
        "operation": {
            "id": "op-1", "kind": "configure", "attempt": 2, "cluster": "c-1",
            "grace_seconds": 7, "timeout_seconds": 60,
        },
    });
    assert_eq!(input, expected);
    assert_eq!(bench.blobs(), 0, "removed after");
    bench.script(Hook::Drain, r#"echo "blob ${BF_BLOB-none}" >"$OUT""#);
    assert_eq!(bench.run(Hook::Drain, MINUTE, None).await, Ran::Done);
    assert_eq!(bench.said(), "blob none\n");
}

#[tokio::test]
async fn exit_codes_tell_and_the_blob_is_never_told() {
    let bench = Bench::new();
    bench.script(Hook::Install, r#"cat "$BF_BLOB" >&2; echo ": no route" >&2; exit 75"#);
    let again = bench.run(Hook::Install, MINUTE, Some(BLOB)).await;
    let text = "install hook asks to be tried again: [redacted]: no route".to_owned();
    assert_eq!(again, Ran::Again(text));
    bench.script(Hook::Install, r#"set -x; : "$(cat "$BF_BLOB")"; exit 3"#);
    let Ran::Failed(text) = bench.run(Hook::Install, MINUTE, Some(BLOB)).await else { panic!() };
    assert!(text.starts_with("install hook exited with 3: ") && !text.contains("marker"), "{text}");
    bench.script(Hook::Install, "kill -9 $$");
    let Ran::Failed(text) = bench.run(Hook::Install, MINUTE, Some(BLOB)).await else { panic!() };
    assert!(text.starts_with("install hook was killed: "), "{text}");
    let Ran::Failed(text) = bench.run(Hook::Wipe, MINUTE, None).await else { panic!() };
    assert!(text.starts_with("wipe hook cannot be run: "), "{text}");
    assert_eq!(bench.blobs(), 0);
}

/// A hook with a child, both of which never end.
const ENDLESS: &str = r#"sleep 600 & echo "$! $$" >"$OUT.new"; mv "$OUT.new" "$OUT"; wait"#;

#[tokio::test]
async fn a_limit_ends_the_whole_group() {
    let bench = Bench::new();
    bench.script(Hook::Install, ENDLESS);
    let limit = Duration::from_secs(2);
    let Ran::Overran(text) = bench.run(Hook::Install, limit, Some(BLOB)).await else { panic!() };
    assert!(text.starts_with("install hook did not finish within 2s: "), "{text}");
    let said = bench.said();
    assert_eq!(said.split_whitespace().count(), 2);
    until(|| !said.split_whitespace().any(alive)).await;
    assert_eq!(bench.blobs(), 0);
}

#[tokio::test]
async fn a_cancellation_and_a_drop_end_the_whole_group() {
    for dropped in [false, true] {
        let bench = Arc::new(Bench::new());
        bench.script(Hook::Install, ENDLESS);
        let runner = bench.clone();
        let run =
            tokio::spawn(async move { runner.run(Hook::Install, 10 * MINUTE, Some(BLOB)).await });
        until(|| !bench.said().is_empty()).await;
        assert_eq!(bench.blobs(), 1);
        if dropped {
            run.abort();
            assert!(run.await.unwrap_err().is_cancelled());
        } else {
            bench.op.cancelled.cancel();
            assert!(matches!(run.await.unwrap(), Ran::Again(_)));
        }
        let said = bench.said();
        until(|| !said.split_whitespace().any(alive)).await;
        assert_eq!(bench.blobs(), 0);
    }
}

#[tokio::test]
async fn a_hook_may_leave_a_process_behind_that_holds_its_pipes() {
    let bench = Bench::new();
    bench.script(Hook::Drain, r#"sleep 600 & echo $! >"$OUT"; echo sorry >&2; exit 1"#);
    let Ran::Failed(text) = bench.run(Hook::Drain, 10 * MINUTE, None).await else { panic!() };
    assert_eq!(text, "drain hook exited with 1: sorry");
    let child: i32 = bench.said().trim().parse().unwrap();
    let child = rustix::process::Pid::from_raw(child).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn hooks_that_cannot_be_run_are_named() {
    let bench = Bench::new();
    let directory = bench.root.path().join("hooks");
    assert!(Hook::check_all(&directory).unwrap_err().contains("install, drain and wipe"));
    for hook in [Hook::Install, Hook::Drain, Hook::Wipe] {
        bench.script(hook, "");
    }
    Hook::check_all(&directory).unwrap();
    fs::write(directory.join("status"), "").unwrap();
    let error = Hook::check_all(&directory).unwrap_err();
    assert!(error.contains("hooks/status") && error.contains("executable"), "{error}");
}
