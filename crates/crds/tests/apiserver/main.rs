//! The manifests in a real API server: it takes them, and they mean what the specification says.
//!
//! One control plane serves all checks, since each would cost several seconds.

#![allow(clippy::unwrap_used)]

mod kubectl;
mod objects;
mod printing;
mod samples;
mod status;

use kubectl::Cluster;

const PLURALS: [&str; 3] = ["capacityrequests", "availablecapacities", "upcomingnodes"];

#[test]
fn the_definitions_in_a_real_api_server() {
    let Some(cluster) = Cluster::start_or_skip() else {
        return;
    };
    install(&cluster);

    samples::good_ones_are_accepted(&cluster);
    samples::bad_ones_are_refused_for_the_expected_reason(&cluster);

    objects::unknown_fields_are_pruned(&cluster);
    objects::a_new_request_is_pending(&cluster);
    objects::stored_objects_read_as_our_types(&cluster);

    status::phases_are_those_of_the_specification(&cluster);
    status::bad_conditions_are_refused(&cluster);
    status::conditions_of_two_writers_merge_by_type(&cluster);
    status::the_hint_has_no_status(&cluster);

    printing::short_names_and_the_category_work(&cluster);
    printing::columns_are_those_of_the_specification(&cluster);
    printing::requests_can_be_selected_by_phase(&cluster);
    printing::fields_are_explained(&cluster);
}

fn install(cluster: &Cluster) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../api/crd");
    cluster.ok(&["apply", "--dry-run=server", "-f", folder]);
    // Server-side: the warnings of a schema that is not structural would fail this.
    cluster.ok(&["apply", "--server-side", "--warnings-as-errors", "-f", folder]);
    for plural in PLURALS {
        let name = format!("crd/{plural}.bigfleet.lucy.sh");
        cluster.ok(&["wait", "--for=condition=Established", "--timeout=60s", &name]);
        cluster.ok(&["wait", "--for=condition=NamesAccepted", "--timeout=60s", &name]);
        let conditions = cluster.ok(&["get", &name, "-o=jsonpath={.status.conditions[*].type}"]);
        assert!(!conditions.contains("NonStructuralSchema"), "{name}: {conditions}");
        // Discovery follows a moment later.
        cluster.eventually(&["get", plural, "--all-namespaces"]);
    }
    cluster.ok(&["create", "namespace", "samples"]);
}
