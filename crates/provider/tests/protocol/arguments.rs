//! Caps and bounds, at their edges.

use std::collections::BTreeMap;

use bigfleet_provider::protocol::{BadArgument, Caps, Token};

fn metadata(keys: usize, bytes: usize) -> BTreeMap<String, String> {
    (0..keys).map(|index| (format!("{index:04}"), "v".repeat(bytes / keys - 4))).collect()
}

#[test]
fn numbers_and_names() {
    for (good, result) in [
        (true, BadArgument::check_id("id", "x")),
        (false, BadArgument::check_id("id", "")),
        (true, BadArgument::check_grace(0)),
        (true, BadArgument::check_grace(i64::MAX)),
        (false, BadArgument::check_grace(-1)),
        (true, BadArgument::check_max_results(0)),
        (false, BadArgument::check_max_results(-1)),
        (true, BadArgument::check_token(&Token::unfenced())),
        (true, BadArgument::check_token(&Token::new("s", -1, -1))),
        (false, BadArgument::check_token(&Token::new("", 5, 0))),
    ] {
        assert_eq!(result.is_ok(), good, "{result:?}");
    }
    let text = BadArgument::check_grace(-5).unwrap_err().to_string();
    assert_eq!(text, "grace_period_seconds: -5 is negative; send >= 0");
}

#[test]
fn a_configure_is_taken_up_to_the_caps_and_not_a_byte_further() {
    let caps = Caps::default();
    let check = |cluster: &str, blob: usize, metadata: &BTreeMap<String, String>| {
        BadArgument::check_configure(caps, cluster, &vec![0; blob], metadata)
            .map_err(|bad| bad.field)
    };
    let none = BTreeMap::new();
    assert_eq!(check("c", 4 << 20, &none), Ok(()));
    assert_eq!(check("c", (4 << 20) + 1, &none), Err("bootstrap_blob"));
    assert_eq!(check("", 0, &none), Err("cluster_id"));
    assert_eq!(check("c", 0, &metadata(256, 64 << 10)), Ok(()));
    assert_eq!(check("c", 0, &metadata(257, 257 * 8)), Err("shard_metadata"));
    let mut heavy = metadata(256, 64 << 10);
    heavy.first_entry().unwrap().get_mut().push('v');
    assert_eq!(check("c", 0, &heavy), Err("shard_metadata"));
}
