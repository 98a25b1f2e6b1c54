//! The author guide shows the example as it is.

const GUIDE: &str = include_str!("../../../../docs/provider-author-guide.md");
const EXAMPLE: &str = include_str!("../../examples/rack.rs");

/// That the example works is what `lifecycle.rs` shows, which walks it.
#[test]
fn the_guide_shows_the_whole_example() {
    let fence = "```rust\n";
    let blocks = GUIDE.split(fence).skip(1).filter_map(|rest| rest.split("```\n").next());
    let shown: Vec<_> = blocks.filter(|block| block.contains("fn main()")).collect();
    assert_eq!(shown, [EXAMPLE], "copy examples/rack.rs into docs/provider-author-guide.md");
    assert!(EXAMPLE.lines().count() < 150, "it grew to {} lines", EXAMPLE.lines().count());
}

#[test]
fn an_author_needs_the_kit_alone() {
    for line in EXAMPLE.lines().filter(|line| line.contains("bigfleet_")) {
        assert!(line.contains("bigfleet_provider_kit"), "{line}");
    }
}
