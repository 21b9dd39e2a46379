//! Why a command did not do what it was to do, and the code to exit with.

use std::io;

use backstitch_api::http::{Code, Problem};

/// The execution came out otherwise than by success.
pub const NO_SUCCESS: u8 = 1;
/// The arguments mean nothing. It is clap's as well.
pub const USAGE: u8 = 2;
/// It was asked, and refused.
pub const REFUSED: u8 = 3;
/// The server, or the store, cannot be reached or does not work.
pub const UNREACHABLE: u8 = 4;
/// It was not over in time.
pub const NOT_OVER: u8 = 5;
/// It was not confirmed.
pub const NOT_CONFIRMED: u8 = 6;

/// Why a command stopped.
#[derive(Debug)]
pub enum Fault {
    /// Whoever reads what is printed has seen enough.
    PipeClosed,
    /// Something to tell.
    Told {
        /// The code to exit with.
        exit: u8,
        /// What to say.
        message: String,
    },
}

impl Fault {
    /// Something to tell.
    pub fn new(exit: u8, message: impl Into<String>) -> Fault {
        Fault::Told { exit, message: message.into() }
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Fault {
        let exit = match problem.code {
            Code::Stopped
            | Code::Unavailable
            | Code::StoreInUse
            | Code::StoreTooNew
            | Code::NotAStore
            | Code::Corrupt
            | Code::TimedOut
            | Code::TooManyConnections
            | Code::Internal => UNREACHABLE,
            Code::NotFound
            | Code::IdInUse
            | Code::OtherInput
            | Code::UnknownWorkflow
            | Code::Invalid
            | Code::Refused
            | Code::Full
            | Code::Unreadable
            | Code::BadBody
            | Code::BadQuery
            | Code::BadPath
            | Code::BadHeader
            | Code::UnsupportedMediaType
            | Code::BodyTooLarge
            | Code::HeadTooLarge
            | Code::UnknownRoute
            | Code::MethodNotAllowed
            | Code::NotLocal
            | Code::TooManyStreams => REFUSED,
        };
        Fault::new(exit, problem.detail)
    }
}

/// Printing has failed.
impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Fault::PipeClosed,
            _ => Fault::new(UNREACHABLE, format!("the output cannot be written: {error}")),
        }
    }
}
