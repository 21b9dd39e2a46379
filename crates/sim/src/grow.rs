//! Growing a world from its seed: programs, what is asked of them, and what goes wrong.

use crate::dice::Dice;
use crate::plan::{
    Act, Code, Deed, Ends, Execution, Fault, Lag, Node, Plan, ProcessPlan, Program, StepSpec,
    TOPICS, UndoSpec, What, each_step,
};

/// Nodes one within the other.
const DEPTH_MAX: u32 = 3;

/// The plan of a seed.
pub(crate) fn plan(seed: u64) -> Plan {
    let mut dice = Dice::new(seed, 1);
    let executions = (0..dice.within(1, 3)).map(|_| execution(&mut dice)).collect::<Vec<_>>();
    let executions = repeated(&mut Dice::new(seed, 5), executions);
    let mut dice = Dice::new(seed, 2);
    let deeds = deeds(&mut dice, executions.len());
    let mut dice = Dice::new(seed, 3);
    let processes = processes(&mut dice);
    let lag = match dice.roll(4) {
        0 => Lag { apply_percent: 100, answer_percent: 100, hurry_percent: 0 },
        _ => Lag {
            apply_percent: dice.within(20, 100),
            answer_percent: dice.within(20, 100),
            hurry_percent: dice.roll(15),
        },
    };
    Plan { seed, executions, deeds, processes, lag }
}

fn execution(dice: &mut Dice) -> Execution {
    let mut names = 0;
    let nodes = nodes(dice, &mut names, 0, 5);
    let ends = match dice.roll(10) {
        0..5 => Ends::Well,
        5..9 => Ends::Failing,
        _ => Ends::Panicking,
    };
    let deadline_ms = dice.percent(10).then(|| dice.within(1, 60_000));
    Execution { program: Program { nodes, ends }, deadline_ms }
}

/// In some worlds steps have the names of others; they are told apart by their counts.
fn repeated(dice: &mut Dice, mut executions: Vec<Execution>) -> Vec<Execution> {
    if dice.percent(20) {
        let names = dice.within(1, 3) as u32;
        let programs = executions.iter_mut().map(|execution| &mut execution.program);
        programs.for_each(|program| {
            each_step(&mut program.nodes, &|spec| spec.name = spec.name % names + 1);
        });
    }
    executions
}

fn nodes(dice: &mut Dice, names: &mut u32, depth: u32, most: u64) -> Vec<Node> {
    (0..dice.within(1, most)).map(|_| node(dice, names, depth)).collect()
}

fn node(dice: &mut Dice, names: &mut u32, depth: u32) -> Node {
    let inner = |dice: &mut Dice, names: &mut u32| nodes(dice, names, depth + 1, 2);
    let sides = if depth < DEPTH_MAX { 22 } else { 14 };
    match dice.roll(sides) {
        0..9 => Node::Step(step(dice, names)),
        9 | 10 => Node::Sleep { ms: delay_ms(dice) },
        11 => {
            let until_ms = dice.percent(80).then(|| delay_ms(dice));
            let (topic, optional) = (dice.roll(TOPICS.len() as u64) as usize, dice.percent(70));
            Node::Wait { name: next(names), topic, until_ms, optional }
        }
        12 => Node::WaitAny { name: next(names), until_ms: delay_ms(dice) },
        13 => Node::Publish { key: next(names) },
        14 | 15 => Node::Catch(inner(dice, names)),
        16 | 17 => Node::Join((0..dice.within(2, 3)).map(|_| inner(dice, names)).collect()),
        18 => Node::Race((0..dice.within(2, 3)).map(|_| inner(dice, names)).collect()),
        19 | 20 => {
            let left = inner(dice, names);
            Node::Select(left, inner(dice, names))
        }
        _ => {
            let (held, other) = (step(dice, names), step(dice, names));
            Node::Hold(held, other, inner(dice, names))
        }
    }
}

fn next(names: &mut u32) -> u32 {
    *names += 1;
    *names
}

fn step(dice: &mut Dice, names: &mut u32) -> StepSpec {
    let undo = dice.percent(75).then(|| UndoSpec {
        acts: acts(dice, 25),
        max_attempts: dice.within(1, 3) as u32,
        halts: dice.percent(20),
        only_after_success: dice.percent(20),
    });
    StepSpec {
        name: next(names),
        acts: acts(dice, 20),
        max_attempts: dice.within(1, 4) as u32,
        delay_ms: dice.roll(3_000),
        timeout_ms: dice.within(500, 5_000),
        blocks_when_exhausted: dice.percent(15),
        cancelled_when_abandoned: dice.percent(25),
        kept_when_dropped: dice.percent(20),
        undo,
    }
}

fn acts(dice: &mut Dice, trouble_percent: u64) -> Vec<Act> {
    let mut acts = Vec::new();
    while acts.len() < 3 && dice.percent(trouble_percent + 20) {
        acts.push(act(dice));
    }
    acts
}

fn act(dice: &mut Dice) -> Act {
    match dice.roll(14) {
        0..3 => Act::Fail,
        3 | 4 => Act::FailAfter { ms: dice.roll(3_000) },
        5..9 => Act::SucceedAfter { ms: dice.roll(6_000) },
        9 => Act::AskForLater { ms: dice.roll(5_000) },
        10 | 11 => Act::Refuse,
        12 => Act::CallForHelp,
        _ => Act::Panic,
    }
}

/// Mostly short; now and then so long that an execution is parked.
fn delay_ms(dice: &mut Dice) -> u64 {
    match dice.roll(4) {
        0 => dice.roll(50),
        1 | 2 => dice.roll(8_000),
        _ => dice.within(20_000, 90_000),
    }
}

fn deeds(dice: &mut Dice, executions: usize) -> Vec<Deed> {
    let mut deeds = Vec::new();
    // In some worlds nobody interferes.
    let busy = [0, 1, 3, 6][dice.roll(4) as usize];
    for execution in 0..executions {
        let mut add = |dice: &mut Dice, tick, what| {
            deeds.push(Deed { tick, execution, what, twice: dice.percent(25) });
        };
        let start = dice.roll(10);
        add(dice, start, What::Start);
        if dice.percent(40) {
            add(dice, start + dice.clone().roll(30), What::Result);
        }
        for number in 0..dice.roll(5) {
            let topic = dice.roll(TOPICS.len() as u64) as usize;
            let tick = start + dice.roll(80);
            add(dice, tick, What::Event { topic, number });
        }
        for _ in 0..dice.roll(busy + 1) {
            let what = match dice.roll(20) {
                0..4 => What::Cancel,
                4 | 5 => What::Terminate,
                6 => What::Kill,
                7..10 => What::Pause,
                10..12 => What::Resume,
                12 | 13 => What::ResumeShifted,
                14..16 => What::Rollback,
                _ => What::Settle,
            };
            let tick = start + dice.roll(120);
            add(dice, tick, what);
        }
    }
    deeds.sort_by_key(|deed| deed.tick);
    deeds
}

fn processes(dice: &mut Dice) -> Vec<ProcessPlan> {
    // How wild it is, from quiet to one death after another.
    let wild = dice.roll(5);
    let altered = dice.percent(8);
    let versions = dice.percent(15);
    let processes = if wild == 0 { 1 } else { dice.within(1, 2 + 2 * wild) };
    (0..processes)
        .map(|number| {
            let mut faults = Vec::new();
            if wild > 0 {
                faults.push(ending(dice));
            }
            for _ in 0..dice.roll(wild + 1) {
                faults.push(trouble(dice));
            }
            faults.sort_by_key(|fault| fault.tick());
            let code = match dice.roll(3) {
                0 if altered => Code::Altered { before: dice.roll(5) as usize },
                0 if versions && number > 0 => Code::NextOnly,
                1 if versions => Code::Both,
                _ => Code::Usual,
            };
            ProcessPlan { faults, code }
        })
        .collect()
}

fn ending(dice: &mut Dice) -> Fault {
    let tick = match dice.roll(3) {
        0 => dice.within(1, 8),
        _ => dice.within(3, 60),
    };
    match dice.roll(10) {
        0..7 => Fault::Die { tick, survive: dice.roll(4) as usize },
        7 | 8 => Fault::Stall { tick, ticks: dice.within(2, 40) },
        _ => Fault::Stop { tick },
    }
}

fn trouble(dice: &mut Dice) -> Fault {
    let tick = dice.roll(60);
    match dice.roll(7) {
        0 | 1 => Fault::Full { tick, ticks: dice.within(1, 6) },
        2 | 3 => Fault::Deaf { tick, ticks: dice.within(1, 3) },
        4 => Fault::Blind { tick, ticks: dice.within(1, 4) },
        5 => Fault::Jump { tick, ms: dice.roll(600_000) as i64 },
        _ => Fault::Jump { tick, ms: -(dice.roll(600_000) as i64) },
    }
}
