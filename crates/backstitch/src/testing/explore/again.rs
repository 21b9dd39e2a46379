//! One world of an exploration, run again by its name.

use super::drawn::with_faults;
use super::fault::Fault;
use super::faults::with_another;
use super::report::{Finding, FindingKind, Report};
use super::tally::name;
use super::{Explore, ONLY};
use crate::error::{Error, ErrorKind};
use crate::workflow::Workflow;

/// Pairs with deaths after later writes are not found by their names.
const WRITES_NAMED_MAX: u64 = 1_000;

/// The name of the world in which nothing goes wrong.
pub(super) const PLAIN: &str = "plain";

impl<W: Workflow, S: 'static> Explore<W, S> {
    /// Runs the plain case alone, and draws it.
    pub(super) fn draw_plain(&self, only: &str, mut report: Report) -> Report {
        let (seen, timeline) = self.plan.run_and_draw(&[]);
        println!("{only}\n\n{timeline}");
        match seen {
            Ok(plain) => {
                self.plain_is_wrong(&plain, &mut report);
            }
            Err(endless) => {
                let finding = Finding::new(&report, &[], endless.to_string());
                report.findings.push(finding);
            }
        }
        report
    }

    /// Runs the world of this name alone, and draws it.
    pub(super) fn run_only(
        self,
        only: &str,
        faults: &[Fault],
        mut report: Report,
    ) -> Result<Report, Error> {
        let only = only.strip_prefix(&format!("{}: ", report.name)).unwrap_or(only);
        let alone = faults.iter().map(|fault| vec![fault.clone()]);
        // How many writes a world has is known when it was run.
        let pairs = faults.iter().flat_map(|fault| with_another(fault, WRITES_NAMED_MAX));
        let world = alone.chain(pairs).find(|world| name(world) == only);
        let Some(faults) = &world else {
            let names: Vec<String> = faults.iter().map(Fault::to_string).collect();
            let message = format!(
                "{ONLY} is {only:?}, and workflow {:?} has no such world; it has {}, {PLAIN}, and with pairs() \
                 two of them with \" + \" in between. A test that explores it twice names each \
                 exploration with named(…)",
                report.workflow,
                names.join(", ")
            );
            return Err(Error::new(ErrorKind::Testing, message));
        };
        let (seen, timeline) = self.plan.run_and_draw(faults);
        println!("{}\n\n{}", name(faults), with_faults(&timeline, faults));
        let (complaint, unfired, owed) = match seen {
            Ok(seen) => (seen.complaint, seen.unfired, seen.owed),
            Err(endless) => (Some(endless.to_string()), Vec::new(), Vec::new()),
        };
        let owed = owed.into_iter().map(|says| Finding::new(&report, faults, says));
        let owed: Vec<Finding> = owed.map(|owed| owed.of_kind(FindingKind::UndoWaived)).collect();
        report.findings.extend(owed);
        if !unfired.is_empty() {
            let mut message = format!("{} is another world: {}", name(faults), unfired.join("; "));
            if let Some(says) = complaint {
                message += &format!("; in this one the check says: {says}");
            }
            return Err(Error::new(ErrorKind::Testing, message));
        }
        report.findings.extend(complaint.map(|says| Finding::new(&report, faults, says)));
        Ok(report)
    }
}

/// Whether it names the world of this exploration in which nothing goes wrong.
pub(super) fn is_plain(only: &str, name: &str) -> bool {
    only == PLAIN || only.strip_prefix(name).is_some_and(|rest| rest == format!(": {PLAIN}"))
}

/// Whether the name of a world begins with the name of an exploration that is not this one.
pub(super) fn is_of_another(only: &str, name: &str) -> bool {
    only.contains(": ") && !only.starts_with(&format!("{name}: "))
}
