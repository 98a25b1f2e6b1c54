//! No link leads nowhere.

use bigfleet_docs::links::{pages, problem};

#[test]
fn every_link_and_anchor_leads_somewhere() {
    let pages = pages().unwrap();
    let mut dead = Vec::new();
    let mut living = 0;
    for page in pages.values() {
        for link in &page.links {
            match problem(&pages, page, &link.target) {
                Some(problem) => {
                    let place = format!("{}:{}", page.path.display(), link.line);
                    dead.push(format!("{place}: {} {problem}", link.target));
                }
                None => living += 1,
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
    // A parser that finds nothing finds nothing dead.
    assert!(living > 300, "only {living} links were found");
}
