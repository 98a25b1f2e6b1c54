//! Stopping by signal, in a process of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::{
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStdout, Command, Stdio},
};

use bigfleet_net::shutdown::Shutdown;

const ROLE: &str = "NET_TEST_ROLE";

/// Not a test: the body of the child processes below.
#[tokio::test]
async fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let shutdown = Shutdown::on_signal().unwrap();
    assert!(!shutdown.is_requested());
    println!("started");
    shutdown.requested().await;
    println!("stopping");
    if role == "hang" {
        std::future::pending::<()>().await;
    }
}

fn start(role: &str) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(ROLE, role)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

fn wait_for(lines: &mut Lines<BufReader<ChildStdout>>, text: &str) {
    lines.find(|line| line.as_ref().unwrap().ends_with(text)).expect("the child ended").unwrap();
}

fn send(signal: &str, child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
}

#[test]
fn int_and_term_stop_in_order() {
    for signal in ["INT", "TERM"] {
        let (mut child, mut lines) = start("obey");
        wait_for(&mut lines, "started");
        send(signal, &child);
        wait_for(&mut lines, "stopping");
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn a_second_signal_ends_a_stop_that_hangs() {
    let (mut child, mut lines) = start("hang");
    wait_for(&mut lines, "started");
    send("TERM", &child);
    wait_for(&mut lines, "stopping");
    send("TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
