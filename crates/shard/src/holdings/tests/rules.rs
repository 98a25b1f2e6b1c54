//! The file and the messages.

use bigfleet_model::Stamp;
use bigfleet_wire::v1alpha1 as wire;

use super::*;

pub(super) fn full() -> Holdings {
    let assignment = Assignment {
        machines_in: machines(&["t/in"]),
        machines_out: machines(&["u/out"]),
        slices: vec![Slice { provider: "p".into(), region: "r".into(), slice: 3 }],
        open_transfers: ids(&["w", "x"]),
        ..assignment(i64::MAX, &["a", "b", "@c", "@d"])
    };
    let mut holdings = after(vec![
        Event::Heard { fleet: Some("u.00000005".parse().unwrap()), term: i64::MAX },
        Event::Assigned(assignment),
        Event::Picked { transfer: "w".into(), out: out(&["m", "n"]) },
        Event::Picked {
            transfer: "x".into(),
            out: Out {
                drain: Some(Drain { bucket: PenaltyBucket::PINNED, ..drain_for(-1) }),
                ..out(&["o"])
            },
        },
    ]);
    holdings.releasing = keys(&["z", "@y"]);
    holdings.settled = machines(&["s/old"]);
    holdings
}

#[test]
fn what_is_written_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("assignment");
    assert_eq!(file::read(&path).unwrap(), Holdings::default());
    for holdings in [Holdings::default(), full()] {
        file::write(&path, &holdings).unwrap();
        assert_eq!(file::read(&path).unwrap(), holdings);
    }
}

/// A drain that an earlier version wrote down says nothing of the penalty, and so it ends
/// nobody's work.
#[test]
fn a_drain_of_an_earlier_version_is_read_and_evicts_nobody() {
    let text = String::from_utf8(file::encode(&full()).unwrap()).unwrap();
    let before = text.replace("\"bucket\":27,", "");
    assert_ne!(before, text);
    let mut expected = full();
    let kept = expected.out.get_mut("x").unwrap().drain.as_mut().unwrap();
    kept.bucket = PenaltyBucket::UNSPECIFIED;
    assert_eq!(file::decode(before.as_bytes()), Ok(expected));
    let stamp = Stamp { priority: Some(-9), ..Stamp::default() };
    let drain = Drain { bucket: PenaltyBucket::UNSPECIFIED, ..drain_for(1_000) };
    assert!(!drain.may_evict(Some(&stamp)));
    let unknown = text.replace("\"bucket\":27,", "\"bucket\":28,");
    assert!(file::decode(unknown.as_bytes()).unwrap_err().contains("28"));
}

/// To overlook a part of the file is to own what is somebody else's.
#[test]
fn damage_and_other_formats_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("assignment");
    let whole = file::encode(&full()).unwrap();
    for end in 0..whole.len() - 1 {
        assert!(file::decode(&whole[..end]).is_err(), "cut at {end}");
    }
    std::fs::write(&path, &whole[..9]).unwrap();
    let error = file::read(&path).unwrap_err().to_string();
    assert!(error.contains(path.to_str().unwrap()) && error.contains("do not remove"), "{error}");
    let text = String::from_utf8(whole).unwrap();
    let newer = text.replace("\"format\":1", "\"format\":2");
    assert!(file::decode(newer.as_bytes()).unwrap_err().contains("format 2"));
}

#[test]
fn an_assignment_of_the_wire_is_read_whole_or_not_at_all() {
    let home = Some(domain("home").to_wire("donor"));
    let on_transfer = |home| wire::TransferMachine {
        transfer_id: "t".to_owned(),
        machine_id: "m".to_owned(),
        home,
    };
    let message = wire::Assignment {
        digest: 7,
        version: 4,
        domains: vec![domain("a").to_wire("us")],
        clusters: vec!["c".to_owned()],
        machines_in: vec![on_transfer(home.clone())],
        machines_out: vec![on_transfer(home)],
        quota_slices: vec![wire::QuotaSlice {
            provider: "p".to_owned(),
            region: "r".to_owned(),
            slice: 3,
        }],
        open_transfers: vec!["w".to_owned()],
    };
    let expected = Assignment {
        machines_in: machines(&["t/m"]),
        machines_out: machines(&["t/m"]),
        slices: vec![Slice { provider: "p".into(), region: "r".into(), slice: 3 }],
        open_transfers: ids(&["w"]),
        ..assignment(4, &["a", "@c"])
    };
    assert_eq!(Assignment::try_from(message.clone()), Ok(expected));
    let homeless = wire::Assignment { machines_in: vec![on_transfer(None)], ..message.clone() };
    assert_eq!(Assignment::try_from(homeless), Err(Malformed::NoHome("t".to_owned())));
    let nowhere = wire::Assignment { domains: vec![wire::DomainAssignment::default()], ..message };
    assert!(matches!(Assignment::try_from(nowhere), Err(Malformed::Domain(_))));
}

#[test]
fn a_report_says_what_is_releasing_settled_and_held() {
    let holdings = full();
    let releasing = holdings.releasing_message("us").unwrap();
    assert_eq!((releasing.domains.len(), releasing.clusters), (1, vec!["y".to_owned()]));
    assert_eq!(Holdings::default().releasing_message("us"), None);
    let settled = holdings.settled_message();
    assert_eq!((settled.len(), settled[0].machine_id.as_str()), (1, "old"));
    let held = holdings.holdings_message("us");
    let domains: Vec<&str> = held.domains.iter().map(|one| &*one.topology_value).collect();
    assert_eq!(domains, ["a", "b", "z"], "what is being released, too");
    assert_eq!(held.clusters, ["c", "d", "y"]);
    assert_eq!(held.machines_in.len(), 1);
    let home = held.machines_in[0].home.as_ref().unwrap();
    assert_eq!((&*home.topology_value, &*home.shard_id), ("home", "donor"));
}
