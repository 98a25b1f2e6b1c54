//! What the documentation shows is taken.

use std::path::Path;

use bigfleet_provider_sim::{Config, Fleet};

const GUIDE: &str = include_str!("../../../../docs/simulated-clouds.md");

#[test]
fn the_documented_clouds_are_sound() {
    let (_, rest) = GUIDE.split_once("```yaml\n").unwrap();
    let (document, _) = rest.split_once("```\n").unwrap();
    let config = Config::parse(document).unwrap();
    assert_eq!(config.clouds.len(), 2);
    Fleet::open(&config, Path::new("")).unwrap();
}
