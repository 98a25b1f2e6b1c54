//! Many waits, few calls: a thousand creates that each ask whether their instance runs
//! would be throttled, so that questions are gathered and asked together.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bigfleet_provider_kit::CloudError;
use tokio::{
    sync::{mpsc, oneshot},
    time::sleep,
};
use tokio_util::task::AbortOnDropHandle;

use crate::api::{Ec2, FILTER_VALUES, Instance};

/// How long questions are gathered.
const GATHER: Duration = Duration::from_millis(20);

/// What is filtered by, and by what else with it.
pub(crate) type Filter = (&'static str, &'static [(&'static str, &'static [&'static str])]);

type Reply = oneshot::Sender<Result<Vec<Instance>, CloudError>>;

/// Asks for instances by one attribute.
#[derive(Debug)]
pub(crate) struct Lookup {
    questions: mpsc::UnboundedSender<(String, Reply)>,
    _task: AbortOnDropHandle<()>,
}

impl Lookup {
    /// By this filter; `attribute` reads the same off an instance.
    pub(crate) fn new(ec2: Arc<Ec2>, filter: Filter, attribute: fn(&Instance) -> &str) -> Self {
        let (questions, asked) = mpsc::unbounded_channel();
        let task = tokio::spawn(answer(ec2, filter, attribute, asked));
        Self { questions, _task: AbortOnDropHandle::new(task) }
    }

    /// All instances with this value that are visible at present.
    pub(crate) async fn find(&self, value: &str) -> Result<Vec<Instance>, CloudError> {
        let (reply, answer) = oneshot::channel();
        let stopped = || CloudError::Retry("the provider is stopping".to_owned());
        self.questions.send((value.to_owned(), reply)).map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

async fn answer(
    ec2: Arc<Ec2>,
    (name, more): Filter,
    attribute: fn(&Instance) -> &str,
    mut asked: mpsc::UnboundedReceiver<(String, Reply)>,
) {
    while let Some((value, reply)) = asked.recv().await {
        sleep(GATHER).await;
        let mut waiting: HashMap<String, Vec<Reply>> = HashMap::from([(value, vec![reply])]);
        while waiting.len() < FILTER_VALUES
            && let Ok((value, reply)) = asked.try_recv()
        {
            waiting.entry(value).or_default().push(reply);
        }
        let found = {
            let values: Vec<_> = waiting.keys().map(String::as_str).collect();
            let mut filters: Vec<(&str, &[&str])> = vec![(name, &values)];
            filters.extend_from_slice(more);
            ec2.describe(&filters).await.map_err(CloudError::from)
        };
        for (value, replies) in waiting {
            let mine = found.clone().map(|mut found| {
                found.retain(|instance| attribute(instance) == value);
                found
            });
            for reply in replies {
                // Who stopped waiting needs no answer.
                let _ = reply.send(mine.clone());
            }
        }
    }
}
