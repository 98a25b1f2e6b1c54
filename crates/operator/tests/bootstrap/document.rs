//! The guide's examples do what the guide says.

use crate::sample::{data, rendered};

const GUIDE: &str = include_str!("../../../../docs/bootstrap-templates.md");

/// The fenced blocks with what stands behind their fence.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let fenced = GUIDE.split("```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').expect("a fence ends its line")).collect()
}

#[test]
fn every_example_renders_as_shown() {
    let blocks = blocks();
    let sample = blocks.iter().find(|(kind, _)| *kind == "json").expect("the guide has its data").1;
    let data = data(&serde_json::from_str(sample).expect("the data is JSON"));
    let mut count = 0;
    for pair in blocks.windows(2) {
        let [("gotemplate", template), (kind, shown)] = pair else { continue };
        assert_eq!(*kind, "text", "what is shown after {template}");
        let output = rendered(template, &data).unwrap_or_else(|error| format!("{error}\n"));
        assert_eq!(output, *shown, "{template}");
        count += 1;
    }
    assert!(count >= 13, "{count} examples are left");
}

#[test]
fn nodes_are_labelled_with_their_machine() {
    let joins = blocks().into_iter().filter(|(kind, text)| {
        *kind == "gotemplate" && (text.contains("kubeadm join") || text.contains("systemctl"))
    });
    assert_eq!(
        joins
            .map(|(_, text)| assert!(text.contains("bigfleet.lucy.sh/machine-id={{ .MachineID }}")))
            .count(),
        2
    );
}
