//! What the API refuses, and what the kit makes of it.

use bigfleet_provider_kit::CloudError;

use crate::http::HttpError;

/// Why a call brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The service's own words.
    #[error("{code}: {message}")]
    Refused {
        /// For programs.
        code: String,
        /// For people.
        message: String,
    },
    /// It did not answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// It answered something else.
    #[error("{action}: cannot read the answer: {problem}")]
    Malformed {
        /// What was asked.
        action: String,
        /// What is wrong.
        problem: String,
    },
}

/// Groups of error codes that are handled alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Too many calls.
    Throttled,
    /// The service has a bad day.
    Unavailable,
    /// No such machine at present.
    OutOfStock,
    /// The account's limit.
    Quota,
    /// No such instance, or not visible so far.
    NotFound,
    /// The client token was used with other parameters.
    TokenReused,
    /// The host's agent has not registered with the command channel.
    NotConnected,
    /// Anything else.
    Other,
}

impl Meaning {
    fn of(code: &str) -> Self {
        match code {
            "RequestLimitExceeded"
            | "Throttling"
            | "ThrottlingException"
            | "RequestThrottled"
            | "RequestThrottledException"
            | "TooManyRequestsException"
            | "OverLimit"
            | "SlowDown" => Self::Throttled,
            "InternalError"
            | "InternalFailure"
            | "InternalServerError"
            | "ServiceUnavailable"
            | "Unavailable" => Self::Unavailable,
            "InsufficientInstanceCapacity"
            | "InsufficientHostCapacity"
            | "InsufficientReservedInstanceCapacity"
            | "InsufficientCapacity"
            | "SpotMaxPriceTooLow"
            | "UnfulfillableCapacity" => Self::OutOfStock,
            "InstanceLimitExceeded"
            | "VcpuLimitExceeded"
            | "MaxSpotInstanceCountExceeded"
            | "MaxSpotFleetRequestCountExceeded"
            | "VolumeLimitExceeded"
            | "NetworkInterfaceLimitExceeded" => Self::Quota,
            "InvalidInstanceID.NotFound" | "InvalidInstanceIDs.NotFound" => Self::NotFound,
            "IdempotentParameterMismatch" => Self::TokenReused,
            "InvalidInstanceId" | "InvocationDoesNotExist" => Self::NotConnected,
            _ => Self::Other,
        }
    }
}

impl ApiError {
    /// A refusal.
    #[must_use]
    pub fn refused(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Refused { code: code.into(), message: message.into() }
    }

    /// What to make of it.
    #[must_use]
    pub fn meaning(&self) -> Meaning {
        match self {
            Self::Refused { code, .. } => Meaning::of(code),
            Self::Http(HttpError::NoAnswer(_)) => Meaning::Unavailable,
            Self::Http(_) | Self::Malformed { .. } => Meaning::Other,
        }
    }
}

impl From<ApiError> for CloudError {
    fn from(error: ApiError) -> Self {
        let text = error.to_string();
        match error.meaning() {
            Meaning::Throttled | Meaning::Unavailable | Meaning::NotConnected => Self::Retry(text),
            Meaning::OutOfStock => Self::OutOfStock(text),
            Meaning::Quota => Self::Quota(text),
            Meaning::NotFound => Self::Gone(text),
            Meaning::TokenReused | Meaning::Other => Self::Fatal(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_place() {
        let place = |code: &str| CloudError::from(ApiError::refused(code, "")).label();
        assert_eq!(place("RequestLimitExceeded"), "retry");
        assert_eq!(place("InsufficientInstanceCapacity"), "out_of_stock");
        assert_eq!(place("VcpuLimitExceeded"), "quota");
        assert_eq!(place("InvalidInstanceID.NotFound"), "gone");
        assert_eq!(place("UnauthorizedOperation"), "fatal");
        let silent = ApiError::from(HttpError::NoAnswer("reset".into()));
        assert_eq!(CloudError::from(silent).label(), "retry");
    }
}
