//! `snapshot save`.

use std::{fs, io::Read as _, os::unix::fs::PermissionsExt as _};

use bigfleet_wire::v1alpha1::{SnapshotSaveChunk, snapshot_save_chunk::Payload};
use tonic::Code;

use crate::rig::{Ctl, coordinator, lead};

fn meta(text: &str) -> SnapshotSaveChunk {
    SnapshotSaveChunk { payload: Some(Payload::MetaJson(text.as_bytes().to_vec())) }
}

fn data(bytes: &[u8]) -> SnapshotSaveChunk {
    SnapshotSaveChunk { payload: Some(Payload::Data(bytes.to_vec())) }
}

#[tokio::test]
async fn save_writes_meta_then_state() {
    let coordinator = coordinator().await;
    lead(&coordinator, &[]);
    let text = r#"{"ID":"x","Index":42,"Term":7,"Size":1500}"#;
    let state: Vec<u8> = (0..1500_u32).map(|n| (n % 251) as u8).collect();
    coordinator.reply(vec![meta(text), data(&state[..1000]), data(&state[1000..])]);
    let ctl = Ctl::to(&[coordinator.addr()]);
    let file = ctl.path("backup.tar");
    let path = file.to_str().unwrap();
    fs::write(&file, "an older one").unwrap();
    let out = ctl.run(&["snapshot", "save", path]).await.ok();
    assert_eq!(out, format!("saved snapshot index=42 term=7 to {path}\n"));
    let mut archive = tar::Archive::new(fs::File::open(&file).unwrap());
    let read = |entry: std::io::Result<tar::Entry<'_, fs::File>>| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.path().unwrap().to_str().unwrap().to_owned(), bytes)
    };
    let entries: Vec<_> = archive.entries().unwrap().map(read).collect();
    assert_eq!(entries[0], ("meta.json".to_owned(), text.as_bytes().to_vec()));
    assert_eq!(entries[1], ("state".to_owned(), state));
    assert_eq!(entries.len(), 2);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        fs::read_dir(ctl.home.path())
            .unwrap()
            .filter(|one| { one.as_ref().unwrap().path().to_string_lossy().contains("partial") })
            .count(),
        0
    );
}

#[tokio::test]
async fn what_is_not_whole_leaves_no_file() {
    let coordinator = coordinator().await;
    lead(&coordinator, &[]);
    let ctl = Ctl::to(&[coordinator.addr()]);
    let file = ctl.path("backup.tar");
    let good = r#"{"Index":1,"Term":1,"Size":3}"#;
    for (chunks, words) in [
        (vec![data(b"abc")], "first frame is not"),
        (vec![], "first frame is not"),
        (vec![meta("not json"), data(b"abc")], "not JSON"),
        (vec![meta(good), data(b"ab")], "after 2 of 3 bytes"),
        (vec![meta(good)], "after 0 of 3 bytes"),
        (vec![meta(good), data(b"abc"), meta(good)], "second meta"),
    ] {
        coordinator.reply(chunks);
        let error = ctl.run(&["snapshot", "save", file.to_str().unwrap()]).await.failed(1);
        assert!(error.contains(words), "{error}");
        let left: Vec<_> = fs::read_dir(ctl.home.path()).unwrap().collect();
        assert!(left.iter().all(|one| one.as_ref().unwrap().file_name() == ".config"), "{left:?}");
    }
    coordinator.refuse::<Vec<SnapshotSaveChunk>>(Code::NotFound, "no snapshot yet");
    let error = ctl.run(&["snapshot", "save", file.to_str().unwrap()]).await.failed(1);
    assert!(error.contains("no snapshot yet"), "{error}");
}
