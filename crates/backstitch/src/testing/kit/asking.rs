//! Asking the executions of a kit.

use std::future::IntoFuture;
use std::marker::PhantomData;

use backstitch_core::event::Event;
use backstitch_core::row::Row;
use serde::Serialize;

use super::TestKit;
use crate::client::Attention;
use crate::error::{Error, ErrorKind};
use crate::handle::{ExecutionStatus, Handle};
use crate::timeline;
use crate::workflow::Workflow;

/// An execution of a kit, with the type of its result. Good for all processes of the kit.
#[derive(Debug)]
pub struct Execution<T> {
    pub(super) id: String,
    output: PhantomData<fn() -> T>,
}

impl<T> Clone for Execution<T> {
    fn clone(&self) -> Execution<T> {
        Execution { id: self.id.clone(), output: PhantomData }
    }
}

impl<T> Execution<T> {
    /// The business id.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl TestKit {
    /// Starts an execution, and goes on until it waits for something.
    ///
    /// # Errors
    /// As [`Client::start`](crate::Client::start); `Testing` inside of another runtime.
    pub fn start<W: Workflow>(
        &mut self,
        workflow: W,
        id: &str,
        input: W::Input,
    ) -> Result<Execution<W::Output>, Error> {
        let input = serde_json::to_value(&input).map_err(|error| {
            let message = format!("the input of execution {id:?} cannot be encoded: {error}");
            Error::new(ErrorKind::Decode, message)
        })?;
        self.call(|app| {
            let input = serde_json::from_value(input.clone());
            let start = input.map(|input: W::Input| app.start(workflow.clone(), id, input));
            async move {
                let start = start.map_err(|error| {
                    let message = format!("the input does not decode as what it was: {error}");
                    Error::new(ErrorKind::Decode, message)
                })?;
                start.await.map(drop)
            }
        })?;
        self.settle()?;
        Ok(Execution { id: id.to_owned(), output: PhantomData })
    }

    /// The execution with this id, whoever started it.
    pub fn execution<T>(&self, id: &str) -> Execution<T> {
        Execution { id: id.to_owned(), output: PhantomData }
    }

    /// Asks something of an execution, and goes on until it waits for something. When the process
    /// dies meanwhile the next one is asked again.
    ///
    /// ```
    /// # use backstitch::testing::{Execution, TestKit};
    /// # fn example(kit: &mut TestKit, trip: &Execution<String>) -> Result<(), backstitch::Error> {
    /// kit.ask(trip, |trip| trip.cancel().by("Ada").reason("rain"))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Whatever it is answered.
    pub fn ask<T, R, F>(
        &mut self,
        execution: &Execution<T>,
        request: impl Fn(&Handle<T>) -> F,
    ) -> Result<R, Error>
    where
        F: IntoFuture<Output = Result<R, Error>>,
    {
        let answer = self.call(|app| {
            let (app, id, request) = (app.clone(), execution.id.clone(), &request);
            async move { request(&app.handle(&id).await?).await }
        })?;
        self.settle()?;
        Ok(answer)
    }

    /// Sends an event.
    ///
    /// # Errors
    /// As [`Handle::send_event`].
    pub fn send_event<T, P: Serialize + ?Sized>(
        &mut self,
        execution: &Execution<T>,
        event_type: &str,
        payload: &P,
    ) -> Result<(), Error> {
        self.ask(execution, |handle| handle.send_event(event_type, payload)).map(drop)
    }

    /// What the execution is doing.
    ///
    /// # Errors
    /// As [`Handle::status`].
    pub fn status<T>(&mut self, execution: &Execution<T>) -> Result<ExecutionStatus, Error> {
        self.call(|app| {
            let (app, id) = (app.clone(), execution.id.clone());
            async move { app.handle::<T>(&id).await?.status().await }
        })
    }

    /// Its journal.
    ///
    /// # Errors
    /// As [`Handle::journal`].
    pub fn journal<T>(&mut self, execution: &Execution<T>) -> Result<Vec<Row>, Error> {
        self.call(|app| {
            let (app, id) = (app.clone(), execution.id.clone());
            async move { app.handle::<T>(&id).await?.journal().await }
        })
    }

    /// Its journal, drawn; and below it what landed late and panicked, which no journal knows.
    ///
    /// # Errors
    /// As [`Handle::journal`].
    pub fn timeline<T>(&mut self, execution: &Execution<T>) -> Result<String, Error> {
        let mut drawn = timeline::draw(&self.journal(execution)?, timeline::Style::Plain);
        for panic in &self.late_panics {
            drawn += &format!("\n{panic}");
        }
        Ok(drawn)
    }

    /// The open matters of all executions.
    ///
    /// # Errors
    /// As [`Client::attention`](crate::Client::attention).
    pub fn attention(&mut self) -> Result<Vec<Attention>, Error> {
        self.call(|app| {
            let app = app.clone();
            async move { app.attention(1_000).await }
        })
    }

    /// The steps whose undos succeeded, in the order in which they did.
    ///
    /// # Errors
    /// As [`Handle::journal`].
    pub fn undone<T>(&mut self, execution: &Execution<T>) -> Result<Vec<String>, Error> {
        let run = self.status(execution)?.run;
        let rows = self.journal(execution)?;
        let events = rows.iter().flat_map(|row| &row.events);
        let undone = events.filter_map(|event| match event {
            Event::UndoSucceeded(undone) => run.step(undone.ord),
            _ => None,
        });
        Ok(undone.map(|step| step.key.to_string()).collect())
    }
}
