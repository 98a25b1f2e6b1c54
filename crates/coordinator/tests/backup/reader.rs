//! What is a backup, and what is not.

use std::{fs, os::unix::fs::symlink};

use bigfleet_coordinator::{
    backup::{Backup, Integrity},
    consensus::Entropy,
};
use tempfile::TempDir;

use crate::rig::{Parts, tar};

/// `BIGFLEET_SEED` alone if it is set, else these.
fn seeds() -> std::ops::Range<u64> {
    let one = std::env::var("BIGFLEET_SEED").ok().map(|seed| seed.parse().expect("a number"));
    one.map_or(0..3_000, |seed: u64| seed..seed + 1)
}

#[tokio::test]
async fn tars_exports_and_latest_are_read_alike() {
    let (parts, dir) = (Parts::new().await, TempDir::new().unwrap());
    let export = dir.path().join("20231114-221320-1-5-1700000000000");
    fs::create_dir(&export).unwrap();
    fs::write(export.join("meta.json"), parts.meta()).unwrap();
    fs::write(export.join("state"), &parts.state).unwrap();
    symlink(export.file_name().unwrap(), dir.path().join("latest")).unwrap();
    fs::write(dir.path().join("b.tar"), parts.tar()).unwrap();
    let wanted = parts.backup();
    for path in [export, dir.path().join("latest"), dir.path().to_owned(), dir.path().join("b.tar")]
    {
        let found = Backup::read(&path, Integrity::Checked).unwrap();
        assert_eq!(found.meta(), wanted.meta(), "{}", path.display());
        assert_eq!(found.state(), wanted.state(), "{}", path.display());
    }
    let absent = Backup::read(&dir.path().join("nowhere"), Integrity::Checked).unwrap_err();
    assert!(absent.to_string().contains("nowhere"), "{absent}");
}

/// As `tar cf b.tar -C export .` writes it.
#[tokio::test]
async fn a_tar_made_by_hand_is_read() {
    let parts = Parts::new().await;
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_size(0);
    archive.append_data(&mut header, "./", &[][..]).unwrap();
    for (name, bytes) in [("./meta.json", parts.meta()), ("./state", parts.state)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, name, bytes.as_slice()).unwrap();
    }
    let tar = archive.into_inner().unwrap();
    Backup::from_tar(tar.as_slice(), Integrity::Checked).unwrap();
}

#[tokio::test]
async fn parts_in_another_order_twice_missing_or_strange_are_refused() {
    let parts = Parts::new().await;
    let (meta, state) = (parts.meta(), parts.state);
    let both = [("meta.json", meta.as_slice()), ("state", state.as_slice())];
    for (entries, words) in [
        (vec![both[1], both[0]], "state is before meta.json"),
        (vec![both[0]], "state is missing"),
        (vec![both[1]], "state is before meta.json"),
        (vec![], "meta.json is missing"),
        (vec![both[0], both[0], both[1]], "meta.json is there twice"),
        (vec![both[0], both[1], both[1]], "state is there twice"),
        (vec![both[0], both[1], ("more", b"x")], "it holds \"more\""),
        (vec![("etc/passwd", b"x")], "it holds \"etc/passwd\""),
    ] {
        let error = Backup::from_tar(tar(&entries).as_slice(), Integrity::Skipped).unwrap_err();
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("meta.json"), &meta).unwrap();
    let half = Backup::read(dir.path(), Integrity::Skipped).unwrap_err();
    assert_eq!(half.to_string(), "state is missing");
    let empty = Backup::read(TempDir::new().unwrap().path(), Integrity::Skipped).unwrap_err();
    assert_eq!(empty.to_string(), "meta.json is missing");
}

#[tokio::test]
async fn every_truncation_and_every_flipped_byte_is_refused() {
    let parts = Parts::new().await;
    let whole = parts.tar();
    // What follows the state is padding and the end of the archive.
    let end = 512 + parts.meta().len().next_multiple_of(512) + 512 + parts.state.len();
    for cut in 0..end {
        let read = Backup::from_tar(&whole[..cut], Integrity::Checked);
        assert!(read.is_err(), "cut at {cut} of {end}");
    }
    for at in 0..parts.state.len() {
        let mut spoilt = parts.clone();
        spoilt.state[at] ^= 1;
        let error = spoilt.read(Integrity::Checked).unwrap_err();
        assert!(error.contains("SHA-256"), "{at}: {error}");
    }
    // A header that lies; digits of its checksum may be written in several ways.
    for at in (0..512).filter(|at| !(148..156).contains(at)) {
        let mut spoilt = whole.clone();
        spoilt[at] ^= 0x10;
        assert!(Backup::from_tar(spoilt.as_slice(), Integrity::Checked).is_err(), "{at}");
    }
}

#[tokio::test]
async fn what_meta_says_must_be_so() {
    let good = Parts::new().await;
    let index = good.meta["Index"].as_u64().unwrap();
    let mut longer = good.clone();
    longer.state.push(b' ');
    let unlike = |field: &str, value: serde_json::Value| good.clone().with(field, value);
    for (parts, words) in [
        (unlike("Index", 0.into()), "index is 0"),
        (unlike("Index", "x".into()), "meta.json cannot be read"),
        (unlike("Size", 1.into()), "meta.json says 1"),
        (unlike("SHA256", "00".into()), "SHA-256"),
        (unlike("SHA256", "".into()), "no SHA256"),
        (unlike("FormatVersion", 2.into()), "format 2 is newer than 1"),
        (unlike("Index", (index - 1).into()), "of two backups"),
        (unlike("FleetID", "other.00000000".into()), "of two backups"),
        (longer, "bytes, meta.json says"),
        (good.clone().edited(r#""FormatVersion":1"#, r#""FormatVersion":2"#), "format 2"),
        (good.clone().edited(r#""Name":"p""#, r#""Name":"""#), "provider.name is empty"),
        (good.clone().edited("{", "["), "cannot be read"),
    ] {
        let error = parts.read(Integrity::Checked).unwrap_err();
        assert!(error.contains(words), "{words}: {error}");
    }
    // A human's word does for the checksums alone.
    for (parts, taken) in [
        (unlike("Size", 1.into()), true),
        (unlike("SHA256", "00".into()), true),
        (unlike("FormatVersion", 2.into()), false),
        (unlike("Index", 0.into()), false),
        (unlike("Index", (index - 1).into()), false),
        (good.clone().edited("{", "["), false),
    ] {
        assert_eq!(parts.read(Integrity::Skipped).is_ok(), taken, "{}", parts.meta);
    }
    let later = good.with("Later", "a key that is not known");
    later.read(Integrity::Checked).unwrap();
}

#[test]
fn other_files_are_refused() {
    for (bytes, words) in [
        (Vec::new(), "meta.json is missing"),
        (b"{\"Index\":1}".to_vec(), "not a tar"),
        (vec![0; 4096], "meta.json is missing"),
        (vec![0xff; 4096], "not a tar"),
    ] {
        let error = Backup::from_tar(bytes.as_slice(), Integrity::Skipped).unwrap_err();
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
    let huge = vec![b' '; (1 << 20) + 1];
    let error = Backup::from_tar(tar(&[("meta.json", &huge)]).as_slice(), Integrity::Skipped);
    assert!(error.unwrap_err().to_string().contains("meta.json is cut off"));
}

/// Whatever bytes are taken, on a human's word, are taken again as they would be written.
#[tokio::test]
async fn any_bytes_are_refused_or_mean_one_thing() {
    let parts = Parts::new().await;
    let mut taken = 0;
    for seed in seeds() {
        println!("seed {seed}");
        let random = Entropy::seeded(seed);
        let below = |bound: usize| usize::try_from(random.next() % bound as u64).unwrap();
        let (mut meta, mut state) = (parts.meta(), parts.state.clone());
        for _ in 0..=below(3) {
            let bytes = if below(4) == 0 { &mut meta } else { &mut state };
            let at = below(bytes.len());
            match below(4) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[at] = u8::try_from(below(256)).unwrap(),
                2 => bytes.insert(at, b"0123456789{}[]\",:"[below(17)]),
                _ => drop(
                    bytes.drain(at..bytes.len().min(at + below(20)).max(at + 1).min(bytes.len())),
                ),
            }
            if bytes.is_empty() {
                bytes.push(b'x');
            }
        }
        let archive = tar(&[("meta.json", &meta), ("state", &state)]);
        let Ok(backup) = Backup::from_tar(archive.as_slice(), Integrity::Skipped) else { continue };
        taken += 1;
        let state = backup.state().to_payload();
        let meta = serde_json::to_vec(&backup.meta().clone().describing(&state)).unwrap();
        let again = Backup::from_parts(&meta, &state, Integrity::Checked);
        assert_eq!(again.expect("as written").state(), backup.state(), "seed {seed}");
    }
    assert!(taken > 20 || std::env::var("BIGFLEET_SEED").is_ok(), "{taken} were taken");
}
