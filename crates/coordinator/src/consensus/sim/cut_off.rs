//! A restore that ends in the middle.

use super::*;
use crate::log::{DataDir, HardState, LogError, Recovered, memory::Fault};

/// All that a data directory holds.
#[derive(Debug, PartialEq)]
struct Held {
    fleet: Option<String>,
    incarnation: u64,
    hard_state: Option<HardState>,
    recovered: Recovered,
    snapshot: Option<(u64, Vec<u8>)>,
}

fn held(disk: &MemoryDisk) -> Result<Held, LogError> {
    let contents = DataDir::lock(Arc::new(disk.clone()), Path::new("/data"))?.open(0)?;
    Ok(Held {
        fleet: contents.fleet,
        incarnation: contents.incarnation,
        hard_state: contents.hard_state,
        recovered: contents.recovered,
        snapshot: contents.snapshot.map(|snapshot| (snapshot.meta.index, snapshot.state)),
    })
}

/// At every step of the disk: the old directory whole, the new one whole, or one that
/// says that it is neither.
#[test]
fn a_restore_cut_off_at_any_step_leaves_the_old_the_new_or_a_refusal() {
    run(40, |seed| async move {
        let mut group = Group::new(seed, 3).await;
        let (_, leader) = group.opened().await;
        for value in 0..40 {
            leader.propose(&put("k", value), Duration::from_secs(5)).await.unwrap();
        }
        let backup = Backup::from_snapshot(leader.snapshot().unwrap()).unwrap();
        drop(leader);
        sleep(Duration::from_secs(10)).await;
        group.crash(0);
        let before = group.disks["c-0"].after_crash(0);
        let old = held(&before.after_crash(0)).unwrap();
        assert!(old.snapshot.is_some() && old.recovered != Recovered::default());
        let into = |disk: &MemoryDisk| into_disk(restore_of(backup.clone()), disk);
        let whole = before.after_crash(0);
        into(&whole).unwrap();
        let new = held(&whole.after_crash(0)).unwrap();
        assert_ne!(old, new);
        let (mut kept, mut refused) = (0, 0);
        for step in 0.. {
            let disk = before.after_crash(0);
            disk.fail_after(step, Fault::Error);
            let done = into(&disk).is_ok();
            for keep in [0, 128, 255] {
                let after = disk.after_crash(keep);
                match held(&after) {
                    Ok(found) if found == old => kept += 1,
                    Ok(found) => assert_eq!(found, new, "step {step}"),
                    Err(LogError::HalfRestored { .. }) => refused += 1,
                    Err(error) => panic!("step {step}: {error}"),
                }
                // Whatever it is: the next restore mends it.
                into(&after).unwrap();
                assert_eq!(held(&after.after_crash(0)).unwrap().incarnation, 77, "step {step}");
            }
            if done {
                break;
            }
        }
        assert!(kept > 10 && refused > 10, "{kept} kept, {refused} refused");
    });
}
