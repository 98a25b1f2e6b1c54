use super::*;
use crate::audit::{Filter, Start};

struct Rig {
    dir: tempfile::TempDir,
    metrics: Metrics,
    audit: Arc<Audit>,
}

impl Rig {
    fn new() -> Self {
        let metrics = Metrics::default();
        let audit = Arc::new(Audit::open(1, None, &metrics).unwrap());
        Self { dir: tempfile::tempdir().unwrap(), metrics, audit }
    }

    fn open(&self, options: ActuationOptions) -> Result<Actuation, Error> {
        Actuation::open(Some(self.file()), options, self.audit.clone(), &self.metrics)
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("actuation")
    }

    fn pause_file(&self) -> PathBuf {
        self.dir.path().join("pause")
    }
}

fn active() -> ActuationOptions {
    ActuationOptions::default()
}

#[test]
fn what_was_set_survives_a_restart() {
    let rig = Rig::new();
    let first = rig.open(active()).unwrap();
    assert_eq!((first.mode(), first.state().set_by.as_str()), (Mode::Active, ""));
    let state = first.set(Mode::Paused, "incident 12", "bigfleet://admin").unwrap();
    assert_eq!((state.mode, state.set_mode, state.forced_by), (Mode::Paused, Mode::Paused, None));
    assert_eq!(rig.metrics.actuation_paused.get(), 1);
    drop(first);
    rig.metrics.actuation_paused.set(0);
    let second = rig.open(active()).unwrap();
    assert_eq!(second.state(), state, "reason, time and author, too");
    assert_eq!(rig.metrics.actuation_paused.get(), 1);
    // Another reason for the same mode is no new beginning.
    let again = second.set(Mode::Paused, "still", "bigfleet://admin").unwrap();
    assert_eq!((again.since, again.reason.as_str()), (state.since, "still"));
    second.set(Mode::Active, "over", "bigfleet://admin").unwrap();
    assert_eq!(rig.metrics.actuation_paused.get(), 0);
    assert_eq!(rig.open(active()).unwrap().mode(), Mode::Active);
}

#[test]
fn the_kill_switch_wins_whoever_asks() {
    for paused in [false, true] {
        for dry_run in [false, true] {
            for file in [false, true] {
                for &set in Mode::ALL {
                    let rig = Rig::new();
                    let pause_file = Some(rig.pause_file());
                    if file {
                        fs::write(rig.pause_file(), "").unwrap();
                    }
                    let options = ActuationOptions { paused, dry_run, pause_file };
                    let state = rig.open(options).unwrap().set(set, "x", "y").unwrap();
                    let expected = match () {
                        () if paused || file || set == Mode::Paused => Mode::Paused,
                        () if dry_run || set == Mode::DryRun => Mode::DryRun,
                        () => Mode::Active,
                    };
                    let forced_by = match () {
                        () if paused => Some(ForcedBy::Flag),
                        () if file => Some(ForcedBy::File),
                        () if dry_run && set != Mode::Paused => Some(ForcedBy::Flag),
                        () => None,
                    };
                    let case = (paused, dry_run, file, set);
                    assert_eq!((state.mode, state.forced_by), (expected, forced_by), "{case:?}");
                    assert_eq!(state.set_mode, set);
                    let gauge = rig.metrics.actuation_paused.get();
                    assert_eq!(gauge == 1, expected == Mode::Paused, "{case:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn the_pause_file_stops_and_its_end_wakes_waiters() {
    let rig = Rig::new();
    let pause_file = Some(rig.pause_file());
    let actuation = rig.open(ActuationOptions { pause_file, ..active() }).unwrap();
    let mut follower = actuation.subscribe();
    let mut records = rig.audit.subscribe(Start::Now, Filter::default());
    assert_eq!(actuation.refresh(), Mode::Active);
    assert!(!follower.has_changed().unwrap());
    fs::write(rig.pause_file(), "").unwrap();
    assert_eq!(actuation.refresh(), Mode::Paused);
    assert_eq!(rig.metrics.actuation_paused.get(), 1);
    assert_eq!(actuation.state().forced_by, Some(ForcedBy::File));
    follower.changed().await.unwrap();
    assert_eq!(*follower.borrow_and_update(), Mode::Paused);
    fs::remove_file(rig.pause_file()).unwrap();
    let resumed = follower.wait_for(|mode| *mode == Mode::Active);
    assert_eq!(actuation.refresh(), Mode::Active);
    resumed.await.unwrap();
    for mode in ["paused", "active"] {
        let record = records.next().await.unwrap().record;
        assert_eq!((&*record.outcome, &*record.set_by), (mode, "file"), "each change is a line");
        assert!(record.reason.contains("pause"), "{}", record.reason);
    }
    assert_eq!(rig.metrics.actuation_paused.get(), 0);
}

#[test]
fn a_look_that_fails_changes_nothing() {
    let rig = Rig::new();
    let folder = rig.dir.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let pause_file = folder.join("pause");
    fs::write(&pause_file, "").unwrap();
    let options = ActuationOptions { pause_file: Some(pause_file), ..active() };
    let actuation = rig.open(options.clone()).unwrap();
    assert_eq!(actuation.refresh(), Mode::Paused);
    // What was a folder is now a file: nobody can look inside.
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "").unwrap();
    assert_eq!(actuation.refresh(), Mode::Paused);
    let refused = rig.open(options).unwrap_err().to_string();
    assert!(refused.contains("--pause-file"), "{refused}");
}

#[test]
fn an_unreadable_mode_ends_the_start() {
    let rig = Rig::new();
    for text in [
        "",
        "paused",
        "{\"mode\":\"stopped\",\"since\":\"2026-01-01T00:00:00Z\",\
                               \"reason\":\"\",\"set_by\":\"\"}",
    ] {
        fs::write(rig.file(), text).unwrap();
        let refused = rig.open(active()).unwrap_err().to_string();
        assert!(refused.contains("--actuation-paused"), "{refused}");
    }
}

#[test]
fn a_full_disk_stops_no_brake_and_starts_no_engine() {
    let rig = Rig::new();
    let actuation = rig.open(active()).unwrap();
    // The temporary file cannot be made.
    fs::create_dir(rig.dir.path().join("actuation.tmp")).unwrap();
    let error = actuation.set(Mode::Paused, "incident", "me").unwrap_err().to_string();
    assert!(error.contains("paused for now"), "{error}");
    assert_eq!(actuation.mode(), Mode::Paused);
    let error = actuation.set(Mode::Active, "over", "me").unwrap_err().to_string();
    assert!(error.contains("nothing has changed"), "{error}");
    assert_eq!((actuation.mode(), actuation.state().reason.as_str()), (Mode::Paused, "incident"));
}
