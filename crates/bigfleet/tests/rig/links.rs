//! Links between replicas that can be cut, each direction by itself.
//!
//! Every replica reaches every other by an address of its own, behind which a proxy
//! passes bytes on. What is sent over a cut link is not lost but late, as on a network
//! that drops packets: whoever does not wait for it meets it when the link heals.

use std::{net::SocketAddr, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{AbortHandle, JoinSet},
};

/// One direction; true while it is cut.
type Way = watch::Sender<bool>;

/// All links between so many places.
#[derive(Clone)]
pub(crate) struct Links {
    /// By sender, then by receiver.
    ways: Arc<Vec<Vec<Way>>>,
}

impl Links {
    pub(crate) fn new(places: usize) -> Self {
        let from = |_| (0..places).map(|_| Way::new(false)).collect();
        Self { ways: Arc::new((0..places).map(from).collect()) }
    }

    fn way(&self, from: usize, to: usize) -> &Way {
        &self.ways[from][to]
    }

    /// Cuts or heals one direction.
    pub(crate) fn set(&self, from: usize, to: usize, cut: bool) {
        self.way(from, to).send_replace(cut);
    }

    /// Nobody hears this one any more.
    pub(crate) fn mute(&self, one: usize) {
        self.others(one).for_each(|other| self.set(one, other, true));
    }

    /// This one hears nobody any more.
    pub(crate) fn deafen(&self, one: usize) {
        self.others(one).for_each(|other| self.set(other, one, true));
    }

    /// Both.
    pub(crate) fn isolate(&self, one: usize) {
        self.mute(one);
        self.deafen(one);
    }

    pub(crate) fn heal(&self) {
        self.ways.iter().flatten().for_each(|way| {
            way.send_replace(false);
        });
    }

    fn others(&self, one: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.ways.len()).filter(move |other| *other != one)
    }

    /// Takes connections of one place to another; ends with what is returned.
    pub(crate) async fn proxy(
        &self,
        (from, to): (usize, usize),
        at: SocketAddr,
        target: SocketAddr,
    ) -> Proxy {
        let listener = TcpListener::bind(at).await.unwrap();
        let ways = [self.way(from, to).subscribe(), self.way(to, from).subscribe()];
        Proxy(tokio::spawn(serve(listener, target, ways)).abort_handle())
    }
}

/// A proxy, gone with this.
pub(crate) struct Proxy(AbortHandle);

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn serve(listener: TcpListener, target: SocketAddr, ways: [watch::Receiver<bool>; 2]) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let [mut there, back] = ways.clone();
        connections.spawn(async move {
            open(&mut there).await;
            let Ok(server) = TcpStream::connect(target).await else { return };
            let ((read, write), (from, to)) = (client.into_split(), server.into_split());
            tokio::join!(pump(read, to, there), pump(from, write, back));
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn open(way: &mut watch::Receiver<bool>) {
    // Without a sender the test is over.
    drop(way.wait_for(|cut| !cut).await);
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut way: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 16 << 10];
    while let Ok(read) = from.read(&mut bytes).await {
        open(&mut way).await;
        if read == 0 || to.write_all(&bytes[..read]).await.is_err() {
            break;
        }
    }
    drop(to.shutdown().await);
}
