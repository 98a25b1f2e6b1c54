//! What a coordinator says to everything but reports: per answer's type, what it was
//! told to say.

use std::{
    any::{Any, TypeId},
    collections::{HashMap, VecDeque},
    fmt,
    sync::Arc,
};

use tonic::{Code, Status};

type Reply = Result<Arc<dyn Any + Send + Sync>, (Code, String)>;

/// The replies of a script, and what was asked for.
#[derive(Default)]
pub(super) struct Replies {
    told: HashMap<TypeId, Reply>,
    /// Before those, once each.
    next: HashMap<TypeId, VecDeque<Reply>>,
    pub(super) asked: Vec<String>,
}

impl Replies {
    pub(super) fn tell<R: Any + Send + Sync>(&mut self, reply: Result<R, (Code, String)>) {
        let reply = reply.map(|reply| Arc::new(reply) as Arc<dyn Any + Send + Sync>);
        self.told.insert(TypeId::of::<R>(), reply);
    }

    pub(super) fn tell_once<R: Any + Send + Sync>(&mut self, reply: R) {
        self.next.entry(TypeId::of::<R>()).or_default().push_back(Ok(Arc::new(reply)));
    }

    pub(super) fn take<R: Any + Clone>(&mut self) -> Result<R, Status> {
        let unscripted = || Status::unimplemented("not in the script of this coordinator");
        let kind = TypeId::of::<R>();
        let once = self.next.get_mut(&kind).and_then(VecDeque::pop_front);
        match once.as_ref().or_else(|| self.told.get(&kind)).ok_or_else(unscripted)? {
            Ok(reply) => reply.downcast_ref().cloned().ok_or_else(unscripted),
            Err((code, text)) => Err(Status::new(*code, text.clone())),
        }
    }
}

impl fmt::Debug for Replies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replies").field("asked", &self.asked).finish_non_exhaustive()
    }
}
