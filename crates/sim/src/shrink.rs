//! Making a failing world smaller: what can be left out, and it still breaks the same promise.

use crate::plan::{Node, Plan};
use crate::report;

/// So many smaller worlds are tried at most.
const TRIES_MAX: usize = 1_500;

/// So much work they are in all: a world that does not come to rest is tried less often.
const WORK_MAX: u64 = 20_000_000;

/// The smallest plan that was found to break the same promise.
pub(crate) fn smallest(plan: Plan) -> Plan {
    let (Some(promise), _) = promise(&plan) else { return plan };
    let (mut plan, mut tries, mut work) = (plan, 0, 0);
    loop {
        let mut shrunk = None;
        for smaller in smaller(&plan) {
            tries += 1;
            if tries > TRIES_MAX || work > WORK_MAX {
                return plan;
            }
            let (broken, its_work) = self::promise(&smaller);
            work += its_work;
            if broken.as_ref() == Some(&promise) {
                shrunk = Some(smaller);
                break;
            }
        }
        match shrunk {
            Some(smaller) => plan = smaller,
            None => return plan,
        }
    }
}

/// The name of the promise that a plan breaks first, and the work to find out.
fn promise(plan: &Plan) -> (Option<String>, u64) {
    let report = report(plan);
    let first = report.violations.first().and_then(|first| first.split(':').next());
    (first.map(str::to_owned), report.work)
}

/// Plans with a little less in them, the smallest first.
fn smaller(plan: &Plan) -> Vec<Plan> {
    let mut plans = Vec::new();
    let mut without = |change: &dyn Fn(&mut Plan)| {
        let mut smaller = plan.clone();
        change(&mut smaller);
        plans.push(smaller);
    };
    for number in (0..plan.processes.len()).rev() {
        without(&|plan| {
            plan.processes.remove(number);
        });
    }
    for execution in 0..plan.executions.len() {
        if plan.deeds.iter().any(|deed| deed.execution == execution) && plan.executions.len() > 1 {
            without(&|plan| plan.deeds.retain(|deed| deed.execution != execution));
        }
    }
    for deed in (0..plan.deeds.len()).rev() {
        without(&|plan| {
            plan.deeds.remove(deed);
        });
        if plan.deeds[deed].twice {
            without(&|plan| plan.deeds[deed].twice = false);
        }
    }
    for (number, process) in plan.processes.iter().enumerate() {
        for fault in (0..process.faults.len()).rev() {
            without(&|plan| {
                plan.processes[number].faults.remove(fault);
            });
        }
    }
    for execution in 0..plan.executions.len() {
        if plan.executions[execution].deadline_ms.is_some() {
            without(&|plan| plan.executions[execution].deadline_ms = None);
        }
        for nodes in fewer(&plan.executions[execution].program.nodes) {
            without(&|plan| plan.executions[execution].program.nodes.clone_from(&nodes));
        }
    }
    plans
}

/// The nodes with one less, or with one made simpler.
fn fewer(nodes: &[Node]) -> Vec<Vec<Node>> {
    let mut all = Vec::new();
    for at in (0..nodes.len()).rev() {
        let with = |instead: Vec<Node>| {
            let mut nodes = nodes.to_vec();
            nodes.splice(at..=at, instead);
            nodes
        };
        all.push(with(Vec::new()));
        all.extend(simpler(&nodes[at]).into_iter().map(with));
    }
    all
}

/// What may stand in the place of a node.
fn simpler(node: &Node) -> Vec<Vec<Node>> {
    let branches_of = |branches: &[Vec<Node>], make: fn(Vec<Vec<Node>>) -> Node| {
        let mut all: Vec<Vec<Node>> = branches.to_vec();
        for (at, branch) in branches.iter().enumerate() {
            for nodes in fewer(branch) {
                let mut branches = branches.to_vec();
                branches[at] = nodes;
                all.push(vec![make(branches)]);
            }
        }
        all
    };
    match node {
        Node::Step(spec) => {
            let mut plain = spec.clone();
            match spec.acts.is_empty() {
                true => Vec::new(),
                false => {
                    plain.acts.clear();
                    vec![vec![Node::Step(plain)]]
                }
            }
        }
        Node::Sleep { .. } | Node::Wait { .. } | Node::WaitAny { .. } | Node::Publish { .. } => {
            Vec::new()
        }
        Node::Catch(nodes) => {
            let caught = fewer(nodes).into_iter().map(|nodes| vec![Node::Catch(nodes)]);
            std::iter::once(nodes.clone()).chain(caught).collect()
        }
        Node::Join(branches) => branches_of(branches, Node::Join),
        Node::Race(branches) => branches_of(branches, Node::Race),
        Node::Select(left, right) => {
            let lefts = fewer(left).into_iter().map(|l| vec![Node::Select(l, right.clone())]);
            let rights = fewer(right).into_iter().map(|r| vec![Node::Select(left.clone(), r)]);
            [left.clone(), right.clone()].into_iter().chain(lefts).chain(rights).collect()
        }
        Node::Hold(held, other, rest) => {
            let (held, other) = (held.clone(), other.clone());
            let plain = vec![Node::Step(held.clone()), Node::Step(other.clone())];
            let hold = |rest| vec![Node::Hold(held.clone(), other.clone(), rest)];
            std::iter::once(plain).chain(fewer(rest).into_iter().map(hold)).collect()
        }
    }
}
