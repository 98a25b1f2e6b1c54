//! What is tested: an address, or a command that the suite boots, kills and
//! boots again.

mod command;
mod instance;

pub use command::TargetCommand;
pub use instance::Instance;

/// Where the suite finds its target.
#[derive(Debug, Clone)]
pub enum Target {
    /// It runs already.
    Address(String),
    /// The suite runs it.
    Command(TargetCommand),
}

impl Target {
    /// The command, if the suite may boot and kill.
    #[must_use]
    pub fn command(&self) -> Option<&TargetCommand> {
        match self {
            Self::Address(_) => None,
            Self::Command(command) => Some(command),
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(addr) => f.write_str(addr),
            Self::Command(command) => command.fmt(f),
        }
    }
}
