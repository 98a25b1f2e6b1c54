//! What the provider is asked, and how often.

use std::{collections::BTreeMap, time::Duration};

use bigfleet_model::MachineState;
use bigfleet_provider::{
    fake::{Method, Script, Seed},
    protocol::Kind,
};
use bigfleet_shard::Options;

use crate::rig::{Rig, pods, slow};

fn machines() -> Seed {
    Seed { speculative: 20, ..Seed::default() }
}

#[tokio::test(start_paused = true)]
async fn shard_inv_03_tokens_of_a_machine_rise_at_any_concurrency() {
    for execute_concurrency in [1, 256] {
        let options = Options {
            execute_concurrency,
            provider_max_inflight: execute_concurrency,
            ..Options::default()
        };
        let seed = Seed { speculative: 300, ..Seed::default() };
        let rig = Rig::start(options, slow(), &seed).await;
        let operator = rig.operator("c").await;
        operator.roll_up(pods("c", 40, 8000)).await.expect("accepted");
        rig.until("bought", |rig| rig.count(MachineState::Configured) >= 10).await;
        operator.roll_up(vec![]).await.expect("accepted");
        rig.until("released", |rig| rig.count(MachineState::Speculative) == 300).await;
        let mut last = BTreeMap::new();
        for call in rig.fake.calls() {
            let Some(token) = call.token else { continue };
            let now = (token.epoch, token.sequence);
            let before = last.insert(call.machine.clone(), now);
            assert!(before.is_none_or(|before| before < now), "{}", call.machine);
        }
        assert!(!last.is_empty());
        rig.stop().await;
    }
}

/// shard invariants 9 and 24: what is under way counts, also where nobody knows.
#[tokio::test(start_paused = true)]
async fn shard_inv_24_a_lost_answer_buys_nothing_twice() {
    for (delay, drop_ack) in [(0, true), (100, false), (45, true)] {
        let rig = Rig::start(Options::default(), slow(), &machines()).await;
        let operator = rig.operator("c").await;
        rig.fake.script(Script {
            delay: Duration::from_secs(delay),
            drop_ack,
            ..Script::next(Method::Mutate(Kind::Create))
        });
        operator.roll_up(pods("c", 1, 1000)).await.expect("accepted");
        rig.until("configured", |rig| rig.count(MachineState::Configured) == 1).await;
        rig.pass(600).await;
        let bought = rig.fake.count(MachineState::Speculative);
        assert_eq!(bought, 19, "delay {delay}, lost {drop_ack}: {:#?}", rig.calls(Kind::Create));
        rig.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_applied_after_its_deadline_is_one_machine_and_one_effect() {
    let rig = Rig::start(Options::default(), slow(), &machines()).await;
    let operator = rig.operator("c").await;
    // Sent, given up after 30 s, decided at 50 s.
    rig.knobs().late = Duration::from_secs(20);
    operator.roll_up(pods("c", 1, 1000)).await.expect("accepted");
    rig.pass(25).await;
    rig.knobs().late = Duration::ZERO;
    rig.until("configured", |rig| rig.count(MachineState::Configured) == 1).await;
    rig.pass(600).await;
    assert_eq!(rig.count(MachineState::Speculative), 19);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn shard_inv_09_one_loss_costs_one_acquisition() {
    let seed = Seed { speculative: 40, ..Seed::default() };
    let rig = Rig::start(Options::default(), slow(), &seed).await;
    let operator = rig.operator("c").await;
    operator.roll_up(pods("c", 4, 30_000)).await.expect("accepted");
    rig.pass(300).await;
    let served = rig.count(MachineState::Configured);
    assert!(served > 0);
    rig.fake.clear_calls();
    let lost = rig.fake.random(MachineState::Configured).expect("there is one");
    rig.fake.fail_machine(&lost, "interrupted");
    rig.pass(600).await;
    assert_eq!(rig.count(MachineState::Configured), served);
    assert_eq!(rig.calls(Kind::Create).len(), 1);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn machines_that_fail_are_left_alone_until_one_serves() {
    let rig = Rig::start(Options::default(), slow(), &machines()).await;
    let operator = rig.operator("c").await;
    let broken = (0..20).filter(|at| *at != 9).map(|at| format!("spec-{at}").into());
    rig.knobs().broken.extend(broken);
    operator.roll_up(pods("c", 1, 1000)).await.expect("accepted");
    rig.until("configured", |rig| rig.count(MachineState::Configured) == 1).await;
    let serves = rig.fake.machine("spec-9").expect("known").state;
    assert_eq!(serves, MachineState::Configured);
    // Five failures put a machine into quarantine.
    assert!(rig.knobs().refused <= 19 * 5, "{} tries of broken machines", rig.knobs().refused);
    rig.stop().await;
}
