//! Ports of this run of the tests.

use std::{
    fs::File,
    net::TcpListener,
    sync::{
        OnceLock,
        atomic::{AtomicU16, Ordering},
    },
};

/// A free port that neither an outgoing connection nor another run of these tests is
/// given meanwhile, so that a process can come back to it; as an address on loopback.
///
/// # Panics
///
/// When forty runs are at it already.
#[must_use]
pub fn port() -> String {
    static BLOCK: OnceLock<Block> = OnceLock::new();
    let block = BLOCK.get_or_init(Block::take);
    loop {
        let next = block.next.fetch_add(1, Ordering::Relaxed) % Block::PORTS;
        let addr = format!("127.0.0.1:{}", block.first + next);
        if TcpListener::bind(&addr).is_ok() {
            return addr;
        }
    }
}

/// Ports of this process.
struct Block {
    first: u16,
    next: AtomicU16,
    /// Locked for as long as the process lives.
    _lock: File,
}

impl Block {
    /// Below those that outgoing connections are given.
    const FIRST: u16 = 20_000;
    const PORTS: u16 = 300;
    const BLOCKS: u16 = 40;

    fn take() -> Self {
        let of = |block: u16| std::env::temp_dir().join(format!("bigfleet-test-ports-{block}"));
        let free = (0..Self::BLOCKS).find_map(|block| {
            let lock = File::options().create(true).truncate(false).write(true).open(of(block));
            let lock = lock.ok().filter(|lock| lock.try_lock().is_ok())?;
            let first = Self::FIRST + block * Self::PORTS;
            Some(Self { first, next: AtomicU16::new(0), _lock: lock })
        });
        match free {
            Some(free) => free,
            None => panic!("not as many runs of these tests at once"),
        }
    }
}
