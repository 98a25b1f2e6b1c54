//! Provider truth, and lies (§9, §22).

use std::time::Duration;

use bigfleet_model::MachineState;
use bigfleet_provider::{
    fake::{Fake, Seed},
    protocol::Kind,
};
use bigfleet_scripted::operator::Operator;
use bigfleet_shard::Options;

use crate::rig::{Rig, pods, slow};

/// A shard with some machines at work.
async fn serving(options: Options) -> (Rig, Operator, usize) {
    let seed = Seed { idle: 10, speculative: 40, ..Seed::default() };
    let rig = Rig::start(options, slow(), &seed).await;
    let operator = rig.operator("c").await;
    operator.roll_up(pods("c", 30, 3000)).await.expect("accepted");
    rig.pass(300).await;
    let served = rig.count(MachineState::Configured);
    assert!(served > 2);
    rig.fake.clear_calls();
    (rig, operator, served)
}

fn mutations(rig: &Rig) -> usize {
    Kind::ALL.iter().map(|kind| rig.calls(*kind).len()).sum()
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_erases_nothing_and_buys_nothing() {
    let (rig, operator, served) = serving(Options::default()).await;
    let mut lies = 2;
    rig.knobs().lie = Some(Box::new(move |list| {
        if lies > 0 {
            lies -= 1;
            list.machines.clear();
        }
    }));
    rig.pass(600).await;
    assert_eq!(mutations(&rig), 0, "{}", rig.told());
    assert_eq!(operator.read(|state| state.picture.count(MachineState::Configured)), served);
    assert_eq!(rig.metrics.removals_held.get(), 0, "the truth is back");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn three_lists_that_agree_are_believed() {
    let (rig, operator, _) = serving(Options::default()).await;
    rig.knobs().lie = Some(Box::new(|list| list.machines.clear()));
    let before = rig.knobs().lists;
    rig.until("two lists", |rig| rig.knobs().lists == before + 2).await;
    rig.pass(2).await;
    assert!(operator.read(|state| state.picture.count(MachineState::Configured)) > 0, "not yet");
    assert!(rig.metrics.removals_held.get() > 0);
    operator
        .wait_for("gone", |state| state.picture.machines.is_empty(), Duration::from_secs(60))
        .await
        .expect("every machine is gone");
    let frames = operator.frames();
    assert!(format!("{frames:?}").contains("removed by provider"));
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_down_loses_nobody_and_evicts_nobody() {
    let (rig, operator, served) = serving(Options::default()).await;
    rig.knobs().down = true;
    rig.pass(60).await;
    operator.roll_up(vec![]).await.expect("accepted");
    rig.pass(1800).await;
    let instructed = operator.read(|state| state.received.reclaim_instructions);
    assert_eq!(instructed, 0, "an eviction cannot be undone");
    assert_eq!(rig.count(MachineState::Configured), served);
    rig.knobs().down = false;
    rig.until("released", |rig| rig.count(MachineState::Configured) == 0).await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn shard_inv_19_a_list_begun_before_a_call_never_undoes_it() {
    let options = Options { cycle_interval: Duration::from_secs(2), ..Options::default() };
    let seed = Seed { speculative: 40, ..Seed::default() };
    let rig = Rig::start(options, slow(), &seed).await;
    // Each List is 30 s old when it is told.
    rig.pass(5).await;
    rig.knobs().slow_list = Duration::from_secs(30);
    let operator = rig.operator("c").await;
    let before = rig.knobs().lists;
    operator.roll_up(pods("c", 6, 3000)).await.expect("accepted");
    rig.pass(900).await;
    assert!(rig.knobs().lists > before + 10);
    let creates = rig.calls(Kind::Create).len();
    let configured = rig.count(MachineState::Configured);
    assert_eq!(creates, configured, "each machine is bought once: {}", rig.told());
    assert_eq!(rig.calls(Kind::Configure).len(), configured);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_bad_record_is_refused_alone_and_what_was_known_stays() {
    let (rig, operator, served) = serving(Options::default()).await;
    // What the gate refuses comes as a refusal in the list; the record is not there.
    rig.knobs().lie = Some(Box::new(|list| {
        let bad: Vec<_> = list.machines.extract_if(.., |one| one.cluster.is_some()).collect();
        for machine in bad {
            let mut message = bigfleet_wire::v1alpha1::Machine::from(&machine);
            message.price_per_hour = f64::NAN;
            let why = bigfleet_model::gate::inventory::machine(message).expect_err("refused");
            let id = machine.id.to_string();
            list.refused.push(bigfleet_provider::RefusedRecord { id, why });
        }
    }));
    rig.pass(600).await;
    assert_eq!(mutations(&rig), 0, "shard_inv_12: {}", rig.told());
    assert_eq!(operator.read(|state| state.picture.count(MachineState::Configured)), served);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_spot_loss_is_told_and_served_elsewhere() {
    let (rig, operator, served) = serving(Options::default()).await;
    let lost = rig.fake.random(MachineState::Configured).expect("one serves");
    rig.fake.fail_machine(&lost, "spot instance interrupted");
    operator
        .wait_for(
            "told",
            |s| s.picture.state(&lost) != Some(MachineState::Configured),
            Duration::from_secs(30),
        )
        .await
        .expect("the operator is told");
    rig.until("served", |rig| rig.count(MachineState::Configured) == served).await;
    rig.stop().await;
}

/// shard invariant 25, and everything else in incremental mode.
#[tokio::test(start_paused = true)]
async fn shard_inv_25_incremental_lists_leave_nothing_unread() {
    for page in [0, 7] {
        let options =
            Options { incremental_reconcile: true, provider_list_page: page, ..Options::default() };
        let (rig, operator, served) = serving(options).await;
        let lost = rig.fake.random(MachineState::Configured).expect("one serves");
        rig.fake.fail_machine(&lost, "gone");
        rig.until("served", |rig| rig.count(MachineState::Configured) == served).await;
        operator.roll_up(vec![]).await.expect("accepted");
        rig.until("released", |rig| rig.count(MachineState::Configured) == 0).await;
        rig.pass(1800).await;
        let resting = [MachineState::Idle, MachineState::Failed, MachineState::Speculative];
        let resting: usize = resting.into_iter().map(|state| rig.count(state)).sum();
        assert_eq!(resting, 50);
        assert!(rig.count(MachineState::Idle) <= 10, "what was bought is given back");
        rig.stop().await;
    }
}

/// The idle machines come last in a List long enough to be taken in bit by bit.
#[tokio::test(start_paused = true)]
async fn nothing_is_decided_before_the_first_list_is_read_to_its_end() {
    for page in [0, 5_000] {
        let fake = Fake::new(slow());
        for seed in
            [Seed { speculative: 9_000, ..Seed::default() }, Seed { idle: 12, ..Seed::default() }]
        {
            fake.seed(&seed).expect("the catalogue passes the gate");
        }
        let options = Options { provider_list_page: page, ..Options::default() };
        let rig = Rig::blind(options, fake, 1).await;
        let operator = rig.operator("c").await;
        operator.roll_up(pods("c", 1, 500)).await.expect("accepted");
        {
            let mut knobs = rig.knobs();
            // Long enough for cycles between two pages.
            (knobs.down, knobs.slow_list) = (false, Duration::from_secs(3));
        }
        rig.until("served", |rig| rig.count(MachineState::Configured) == 1).await;
        assert_eq!(rig.calls(Kind::Create).len(), 0, "{}", rig.told());
        rig.stop().await;
    }
}
