//! Events from outside and waits for them; search attributes.

use crate::event::{AttributeOrigin, AttributesSet, EventReceived, WaitSatisfied, WaitStarted};
use crate::id::{KeyKind, Ordinal};
use crate::row::RowKind;
use crate::run::apply::Applied;
use crate::run::{Ask, Run};
use crate::wait::Wait;

impl Run {
    fn wait_mut(&mut self, ord: Ordinal) -> Result<&mut Wait, String> {
        match (ord as usize).checked_sub(1).and_then(|i| self.asks.get_mut(i)) {
            Some(Ask::Wait(wait)) => Ok(wait),
            Some(Ask::Step(_)) => Err(format!("{ord} is a step, not a wait")),
            Some(Ask::Timer(_)) => Err(format!("{ord} is a timer, not a wait")),
            None => Err(format!("there is no wait {ord}")),
        }
    }

    pub(super) fn wait_started(&mut self, event: &WaitStarted) -> Applied {
        self.may_ask(event.ord, &event.key, KeyKind::Wait)?;
        self.asks.push(Ask::Wait(Box::new(Wait::started(event))));
        self.waits.insert(event.ord);
        if let Some(until_us) = event.until_us {
            self.due.insert((until_us, event.ord));
        }
        Ok(())
    }

    pub(super) fn event_received(&mut self, event: &EventReceived) -> Applied {
        self.forward()?;
        self.copied(event.inbox)?;
        self.kept.put(Box::new(event.clone()));
        Ok(())
    }

    pub(super) fn wait_satisfied(&mut self, event: &WaitSatisfied) -> Applied {
        self.shown_in_a_turn()?;
        let Some(taken) = self.kept.take(event.inbox) else {
            return Err(format!("event {} is not there, or was taken", event.inbox));
        };
        self.leave_due(event.ord);
        self.waits.remove(&event.ord);
        self.wait_mut(event.ord)?.satisfied(taken)?;
        match self.wait(event.ord).and_then(|wait| self.kept.first_for(wait)) {
            // P8: the oldest one goes first.
            Some(first) if first.inbox < event.inbox => {
                Err(format!("event {} satisfies it, and was accepted before", first.inbox))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn wait_timed_out(&mut self, ord: Ordinal) -> Applied {
        self.shown_in_a_turn()?;
        self.leave_due(ord);
        self.waits.remove(&ord);
        let now_us = self.now_us;
        self.wait_mut(ord)?.timed_out(now_us)?;
        match self.wait(ord).and_then(|wait| self.kept.first_for(wait)) {
            // P8: it came in time.
            Some(event) => Err(format!("event {} satisfies it", event.inbox)),
            None => Ok(()),
        }
    }

    pub(super) fn wait_cancelled(&mut self, ord: Ordinal) -> Applied {
        self.forward()?;
        self.leave_due(ord);
        self.waits.remove(&ord);
        if let Some(untaken) = self.wait_mut(ord)?.cancelled()? {
            self.kept.put(untaken);
        }
        Ok(())
    }

    fn shown_in_a_turn(&self) -> Applied {
        self.forward()?;
        match self.row_kind {
            RowKind::Turn => Ok(()),
            RowKind::Engine => Err("only a turn shows".into()),
        }
    }

    /// Legal at any time: attributes say something about a run, and change nothing in it.
    pub(super) fn attributes_set(&mut self, event: &AttributesSet) -> Applied {
        match event.origin() {
            AttributeOrigin::Verb => self.copied(event.inbox)?,
            AttributeOrigin::Code => self.forward()?,
            AttributeOrigin::Start => {}
        }
        for change in &event.changes {
            match &change.value {
                Some(value) => self.attributes.insert(change.name.clone(), value.clone()),
                None => self.attributes.remove(&change.name),
            };
        }
        self.attribute_edits.extend(event.changes.iter().cloned());
        Ok(())
    }
}
