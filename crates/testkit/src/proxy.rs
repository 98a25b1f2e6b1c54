//! A TCP proxy that fails on demand: a partition between two processes.
//!
//! ```no_run
//! use bigfleet_testkit::proxy::{Proxy, Way};
//!
//! # fn main() -> std::io::Result<()> {
//! let proxy = Proxy::start("127.0.0.1:7780")?;
//! let addr = proxy.addr(); // for the client
//! proxy.set(Way::Silent); // both sides believe that they are connected
//! proxy.set(Way::Cut); // and now they know that they are not
//! proxy.set(Way::Open);
//! # Ok(()) }
//! ```

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// What becomes of bytes and connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// They pass.
    Open,
    /// Bytes take this much longer, each way.
    Slow(Duration),
    /// Nothing passes and nothing is said: a half-open connection. What was sent meanwhile
    /// arrives when the way is open again.
    Silent,
    /// Connections are closed, new ones at once.
    Cut,
}

/// A running proxy. Dropping it cuts its connections.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    way: Way,
    ended: bool,
    /// Both ends of every connection.
    open: Vec<TcpStream>,
    accepted: u64,
}

impl Proxy {
    /// Listens on a free port of this machine and passes everything on to `target`.
    pub fn start(target: impl Into<String>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let addr = listener.local_addr()?;
        let state = State { way: Way::Open, ended: false, open: Vec::new(), accepted: 0 };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let (accepting, target) = (shared.clone(), target.into());
        thread::spawn(move || accepting.accept(&listener, &target));
        Ok(Self { addr, shared })
    }

    /// Where clients connect.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Changes the way.
    pub fn set(&self, way: Way) {
        let mut state = self.shared.lock();
        state.way = way;
        if way == Way::Cut {
            state.close_all();
        }
        self.shared.changed.notify_all();
    }

    /// Connections that clients have made so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.shared.lock().accepted
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.ended = true;
        state.close_all();
        drop(state);
        self.shared.changed.notify_all();
        // Wakes the listener, which sees that it has ended.
        let _ = TcpStream::connect(self.addr);
    }
}

impl State {
    fn close_all(&mut self) {
        for stream in self.open.drain(..) {
            // It fails where the peer was faster.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener, target: &str) {
        for client in listener.incoming() {
            if self.lock().ended {
                return;
            }
            let Ok(client) = client else { continue };
            self.lock().accepted += 1;
            let shared = self.clone();
            let target = target.to_owned();
            thread::spawn(move || shared.connect(client, &target));
        }
    }

    /// Joins a client with the target; returns when one of them has closed.
    fn connect(self: Arc<Self>, client: TcpStream, target: &str) {
        if !self.wait_open() {
            return;
        }
        let Ok(server) = TcpStream::connect(target) else { return };
        let (Ok(client_out), Ok(server_out)) = (client.try_clone(), server.try_clone()) else {
            return;
        };
        for stream in [&client, &server] {
            if let Ok(stream) = stream.try_clone() {
                self.lock().open.push(stream);
            }
        }
        // The way may have been cut since; then nobody closes these two.
        if self.lock().way == Way::Cut {
            self.lock().close_all();
        }
        let back = self.clone();
        thread::spawn(move || back.pump(server, client_out));
        self.pump(client, server_out);
    }

    fn pump(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read) = from.read(&mut buffer) {
            if read == 0 || !self.wait_open() || to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }

    /// Returns when bytes may pass; false when they never will.
    fn wait_open(&self) -> bool {
        let mut state = self.lock();
        loop {
            let way = if state.ended { Way::Cut } else { state.way };
            match way {
                Way::Open => return true,
                Way::Cut => return false,
                Way::Slow(delay) => {
                    drop(state);
                    thread::sleep(delay);
                    return true;
                }
                Way::Silent => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every byte with its successor.
    fn successor() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                thread::spawn(move || {
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).is_ok() {
                        byte[0] += 1;
                        if stream.write_all(&byte).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        addr
    }

    fn ask(stream: &mut TcpStream, byte: u8) -> io::Result<u8> {
        stream.write_all(&[byte])?;
        let mut answer = [0];
        stream.read_exact(&mut answer)?;
        Ok(answer[0])
    }

    #[test]
    fn passes_holds_back_and_cuts() {
        let proxy = Proxy::start(successor().to_string()).unwrap();
        let mut stream = TcpStream::connect(proxy.addr()).unwrap();
        assert_eq!(ask(&mut stream, 1).unwrap(), 2);

        proxy.set(Way::Slow(Duration::from_millis(20)));
        let before = std::time::Instant::now();
        assert_eq!(ask(&mut stream, 2).unwrap(), 3);
        assert!(before.elapsed() >= Duration::from_millis(40));

        proxy.set(Way::Silent);
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert!(ask(&mut stream, 3).is_err());
        proxy.set(Way::Open);
        stream.set_read_timeout(None).unwrap();
        let mut late = [0];
        stream.read_exact(&mut late).unwrap();
        assert_eq!(late, [4], "what was sent in the silence arrives after it");

        proxy.set(Way::Cut);
        assert!(ask(&mut stream, 4).is_err());
        let mut refused = TcpStream::connect(proxy.addr()).unwrap();
        assert!(ask(&mut refused, 5).is_err());

        proxy.set(Way::Open);
        let mut again = TcpStream::connect(proxy.addr()).unwrap();
        assert_eq!(ask(&mut again, 6).unwrap(), 7);
        assert_eq!(proxy.accepted(), 3);
        drop(proxy);
        assert!(ask(&mut again, 7).is_err());
    }
}
