//! Sound targets: every test passes.

use super::{
    Plan,
    pki::TestCa,
    reference,
    serve::{FakeKind, LARGE_METADATA, fake, fault},
};
use crate::{
    Error,
    catalogue::{self, Profile, Severity},
    filter::Filter,
    gates::Gates,
    progress::Progress,
    report::Report,
    runner::{self, Options},
    target::Target,
    tls::Credentials,
    verdict::Status,
};

const CONTRACT: &[Profile] = &[Profile::Core, Profile::Cloud, Profile::Spot, Profile::Fault];

/// Half of what a certificate asks for: the suite is on trial, not the speed.
const SCALE_SEED: u64 = 4_000;

/// A debug build on a busy machine is slow, and not for that unsound.
const PATIENCE: f64 = 4.0;

/// One sound target and what it must pass.
struct Lane {
    name: &'static str,
    target: Target,
    credentials: Credentials,
    profiles: Vec<Profile>,
    filter: &'static str,
    gates: Gates,
    _ca: Option<TestCa>,
}

/// What is wrong with the sound targets, or with the suite.
pub(super) async fn check(plan: &Plan) -> Result<Vec<String>, Error> {
    let mut problems = Vec::new();
    for (id, status) in reference::ask(&plan.program, None).await? {
        println!("reference fake, in process: {id} {}", status.word());
        if let Status::Failed(reason) = status {
            problems.push(format!("reference fake: sound, but {id} failed: {reason}"));
        }
    }
    for lane in lanes(plan)? {
        eprintln!("sound target: {}", lane.name);
        let options = Options {
            profiles: lane.profiles.clone(),
            filter: Filter::parse(lane.filter),
            soak: plan.soak(),
            scale_seed: SCALE_SEED,
            timeout_scale: PATIENCE,
            ..Options::default()
        };
        let asked = catalogue::all().filter(|test| test.is_asked_by(&options.profiles));
        let progress = Progress::on_stderr(asked.count() as u64);
        let report = runner::run(options, lane.target, lane.credentials, &progress).await?;
        drop(progress);
        println!("{}: {}", lane.name, summary(&report));
        problems.extend(judge(lane.name, &report, lane.gates));
    }
    Ok(problems)
}

fn lanes(plan: &Plan) -> Result<Vec<Lane>, Error> {
    let fault = |further: &[String]| Target::Command(fault(&plan.program, further));
    let state = ["--state={state}".to_owned()];
    let memory = LARGE_METADATA.map(str::to_owned);
    let ca = TestCa::new()?;
    let over_tls = [&state[..], &ca.target_flags()].concat();
    let all = Gates::all();
    let quick = plan.flags.quick;
    let every = [CONTRACT, &[Profile::Durable, Profile::Scale, Profile::Strict]].concat();
    let mut lanes = vec![Lane {
        name: "kit on FileStore",
        target: fault(&state),
        credentials: Credentials::Plaintext,
        profiles: if quick { vec![Profile::Core] } else { every },
        filter: if quick { "SM,LC,CO" } else { "" },
        gates: all,
        _ca: None,
    }];
    if quick {
        return Ok(lanes);
    }
    let no_fault = Gates { flt: false, dur: false, ..all };
    for (name, kind, profiles, gates) in [
        ("fake, instant", FakeKind::Instant, &CONTRACT[..3], no_fault),
        ("fake, staged", FakeKind::Staged, &CONTRACT[..3], no_fault),
        (
            "fake, bare metal",
            FakeKind::BareMetal,
            &[Profile::BareMetal],
            Gates { slot: false, del: false, ..no_fault },
        ),
    ] {
        lanes.push(Lane {
            name,
            target: Target::Command(fake(&plan.program, kind)),
            credentials: Credentials::Plaintext,
            profiles: profiles.to_vec(),
            filter: "",
            gates,
            _ca: None,
        });
    }
    lanes.push(Lane {
        name: "kit on MemStore",
        target: fault(&memory),
        credentials: Credentials::Plaintext,
        profiles: CONTRACT.to_vec(),
        filter: "",
        gates: Gates { dur: false, ..all },
        _ca: None,
    });
    lanes.push(Lane {
        name: "kit over mTLS",
        target: fault(&over_tls),
        credentials: ca.credentials()?,
        profiles: vec![Profile::Core, Profile::Strict],
        filter: "SM,FE,CO,ST-01,ST-02,ST-11",
        gates: Gates { zero: false, ..all },
        _ca: Some(ca),
    });
    Ok(lanes)
}

fn summary(report: &Report) -> String {
    let areas = report.areas().into_iter();
    areas
        .map(|(area, sum)| format!("{area} {}/{}", sum.passed, sum.total))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A sound target passes whatever was tried, and opens the gates it should.
fn judge(name: &str, report: &Report, gates: Gates) -> Vec<String> {
    let mut problems = Vec::new();
    if report.gates != gates {
        problems.push(format!(
            "{name}: the gates are {:?}, due are {:?}",
            report.gates.by_name(),
            gates.by_name()
        ));
    }
    for tested in &report.tests {
        let test = tested.test;
        match &tested.status {
            Status::Failed(reason) if test.severity == Severity::M => {
                let calls: Vec<_> = tested.evidence.iter().map(ToString::to_string).collect();
                let last = &calls[calls.len().saturating_sub(8)..];
                problems.push(format!(
                    "{name}: sound, but {} failed: {reason}\n    {}",
                    test.id,
                    last.join("\n    ")
                ));
            }
            // Tried over mTLS, where there are identities.
            Status::Short(_) if test.id == "ST-11" => {}
            Status::Short(reason) => {
                problems.push(format!("{name}: {} not tried: {reason}", test.id))
            }
            _ => {}
        }
    }
    problems
}
