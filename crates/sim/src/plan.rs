//! What is going to happen in a simulated world: plain data, so that a failing world can be made
//! smaller piece by piece.

/// A whole world.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub seed: u64,
    pub executions: Vec<Execution>,
    pub deeds: Vec<Deed>,
    /// One after another; behind the last one comes a process in which nothing goes wrong.
    pub processes: Vec<ProcessPlan>,
    pub lag: Lag,
}

/// One execution, by its business id `e0`, `e1` …
#[derive(Clone, Debug)]
pub(crate) struct Execution {
    pub program: Program,
    pub deadline_ms: Option<u64>,
}

/// What the workflow function does.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub nodes: Vec<Node>,
    pub ends: Ends,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Well,
    Failing,
    Panicking,
}

#[derive(Clone, Debug)]
pub(crate) enum Node {
    Step(StepSpec),
    Sleep {
        ms: u64,
    },
    Wait {
        name: u32,
        topic: usize,
        until_ms: Option<u64>,
        optional: bool,
    },
    /// For an event of any topic.
    WaitAny {
        name: u32,
        until_ms: u64,
    },
    Publish {
        key: u32,
    },
    /// Errors of what is inside are caught.
    Catch(Vec<Node>),
    Join(Vec<Vec<Node>>),
    Race(Vec<Vec<Node>>),
    Select(Vec<Node>, Vec<Node>),
    /// Two steps side by side; the loser is held while the rest runs, and dropped then.
    Hold(StepSpec, StepSpec, Vec<Node>),
}

/// A step; its name is `s` and the number, and others may have the same.
#[derive(Clone, Debug)]
pub(crate) struct StepSpec {
    pub name: u32,
    /// What the body does at each attempt; afterwards it succeeds at once.
    pub acts: Vec<Act>,
    pub max_attempts: u32,
    pub delay_ms: u64,
    pub timeout_ms: u64,
    pub blocks_when_exhausted: bool,
    pub cancelled_when_abandoned: bool,
    pub kept_when_dropped: bool,
    pub undo: Option<UndoSpec>,
}

#[derive(Clone, Debug)]
pub(crate) struct UndoSpec {
    pub acts: Vec<Act>,
    pub max_attempts: u32,
    pub halts: bool,
    pub only_after_success: bool,
}

/// What one attempt of a body or an undo does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Succeed,
    SucceedAfter { ms: u64 },
    Fail,
    FailAfter { ms: u64 },
    AskForLater { ms: u64 },
    Refuse,
    CallForHelp,
    Panic,
}

impl StepSpec {
    /// What the body does at this attempt, from 1.
    pub(crate) fn act(&self, attempt: u32) -> Act {
        self.acts.get(attempt as usize - 1).copied().unwrap_or(Act::Succeed)
    }
}

impl UndoSpec {
    /// What the handler does at this attempt, from 1.
    pub(crate) fn act(&self, attempt: u32) -> Act {
        self.acts.get(attempt as usize - 1).copied().unwrap_or(Act::Succeed)
    }
}

/// The types of events.
pub(crate) const TOPICS: [&str; 2] = ["apple", "brick"];

/// What somebody asks from outside, when the world is so many ticks old.
#[derive(Clone, Debug)]
pub(crate) struct Deed {
    pub tick: u64,
    pub execution: usize,
    pub what: What,
    /// Asked for again when it was answered: the same request, perhaps of the next process.
    pub twice: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Start,
    Cancel,
    Terminate,
    Kill,
    Pause,
    Resume,
    ResumeShifted,
    Rollback,
    Event {
        topic: usize,
        number: u64,
    },
    /// An operator settles whatever is blocked or stuck.
    Settle,
    /// Somebody waits for the result.
    Result,
}

/// One process.
#[derive(Clone, Debug)]
pub(crate) struct ProcessPlan {
    pub faults: Vec<Fault>,
    pub code: Code,
}

/// Which code a process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Usual,
    /// The next version beside the usual one.
    Both,
    /// Only the next version: what was begun by the usual one has to wait.
    NextOnly,
    /// Other code under the same version: a step more, before the node of this number.
    Altered {
        before: usize,
    },
}

/// What goes wrong, when the process is so many ticks old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Death; of the changes that were on their way so many survive.
    Die { tick: u64, survive: usize },
    /// The process stands still for so many ticks, and the next one takes over meanwhile.
    Stall { tick: u64, ticks: u64 },
    /// Stopped in good order.
    Stop { tick: u64 },
    /// No space: nothing is taken.
    Full { tick: u64, ticks: u64 },
    /// Changes are made, and the answers get lost.
    Deaf { tick: u64, ticks: u64 },
    /// Nothing can be read.
    Blind { tick: u64, ticks: u64 },
    /// Somebody sets the clock.
    Jump { tick: u64, ms: i64 },
}

impl Fault {
    pub(crate) fn tick(self) -> u64 {
        match self {
            Fault::Die { tick, .. }
            | Fault::Stall { tick, .. }
            | Fault::Stop { tick }
            | Fault::Full { tick, .. }
            | Fault::Deaf { tick, .. }
            | Fault::Blind { tick, .. }
            | Fault::Jump { tick, .. } => tick,
        }
    }
}

/// How long changes and answers take, in percent of the ticks at which one goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lag {
    pub apply_percent: u64,
    pub answer_percent: u64,
    /// The clock moves although something else could go on.
    pub hurry_percent: u64,
}

/// Changes every step, those of branches too.
pub(crate) fn each_step(nodes: &mut [Node], change: &impl Fn(&mut StepSpec)) {
    for node in nodes {
        match node {
            Node::Step(spec) => change(spec),
            Node::Hold(held, other, rest) => {
                change(held);
                change(other);
                each_step(rest, change);
            }
            Node::Catch(nodes) => each_step(nodes, change),
            Node::Join(branches) | Node::Race(branches) => {
                branches.iter_mut().for_each(|branch| each_step(branch, change));
            }
            Node::Select(left, right) => {
                each_step(left, change);
                each_step(right, change);
            }
            Node::Sleep { .. }
            | Node::Wait { .. }
            | Node::WaitAny { .. }
            | Node::Publish { .. } => {}
        }
    }
}
