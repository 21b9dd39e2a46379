//! The work of the owner, and what a guest asks for without end.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use backstitch::{Client, Ctx, FailureExt, NoTimeout, Result, msg, workflow};
use serde::{Deserialize, Serialize};

use crate::process::say;

/// What both processes see: files that break a body, and a list of effects.
#[derive(Clone)]
pub struct Place(PathBuf);

impl Place {
    pub fn new(folder: &Path) -> Place {
        Place(folder.to_owned())
    }

    /// From now on it fails.
    pub fn break_it(&self, what: &str) {
        std::fs::write(self.0.join(format!("break {what}")), "").unwrap();
    }

    pub fn mend(&self, what: &str) {
        std::fs::remove_file(self.0.join(format!("break {what}"))).unwrap();
    }

    fn is_broken(&self, what: &str) -> bool {
        self.0.join(format!("break {what}")).exists()
    }

    fn add(&self, effect: &str) {
        let path = self.0.join("effects");
        let mut effects = OpenOptions::new().create(true).append(true).open(path).unwrap();
        effects.write_all(format!("{effect}\n").as_bytes()).unwrap();
    }

    pub fn effects(&self) -> Vec<String> {
        let effects = std::fs::read_to_string(self.0.join("effects")).unwrap_or_default();
        effects.lines().map(str::to_owned).collect()
    }

    pub fn count(&self, effect: &str) -> usize {
        self.effects().iter().filter(|seen| *seen == effect).count()
    }
}

/// What the workflow does after it has booked.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Plan {
    /// Returns so many.
    Returns(u32),
    /// Takes so many events `part`, publishes each, and returns their sum.
    Takes(u32),
    /// Calls somebody who may be broken.
    Calls,
    /// Has a body that does not end.
    Works,
    Fails,
}

#[workflow]
pub async fn job(ctx: Ctx, plan: Plan) -> Result<u32> {
    let book = ctx.step("book", async move |s| {
        s.state::<Place>().add("book");
        Ok(())
    });
    book.rollback(async move |u| {
        let place = u.state::<Place>();
        if place.is_broken("undo") {
            return Err(msg("it cannot be undone").permanent());
        }
        place.add("undo book");
        Ok(())
    })
    .await?;
    match plan {
        Plan::Returns(value) => return Ok(value),
        Plan::Takes(count) => {
            let mut sum = 0;
            for part in 1..=count {
                sum += ctx.wait_event::<u32>("part", "part", NoTimeout).await?;
                ctx.publish("parts", &part)?;
                ctx.set_attribute("Parts", part)?;
            }
            return Ok(sum);
        }
        Plan::Calls => {
            let call = ctx.step("call", async move |s| {
                let place = s.state::<Place>();
                place.add("call");
                if place.is_broken("call") { Err(msg("no such key").attention()) } else { Ok(()) }
            });
            call.await?;
        }
        Plan::Works => {
            let work = ctx.step("work", async move |s| {
                s.state::<Place>().add("begin work");
                std::future::pending::<Result<()>>().await
            });
            work.await?;
        }
        Plan::Fails => ctx.step("ask", async move |_s| Err(msg("no").permanent())).await?,
    }
    Ok(7)
}

/// Says `started ID`, `sent VALUE` and `cancelled ID` for what was acknowledged.
pub async fn ask_without_end(guest: &Client) {
    let takes = guest.handle::<u32>("takes").await.unwrap();
    for number in 1_u32.. {
        let id = format!("guest-{number}");
        let handle = guest.start(job, &id, Plan::Takes(1)).await.unwrap();
        say(&format!("started {id}"));
        takes.send_event("part", &number).id(&id).await.unwrap();
        say(&format!("sent {number}"));
        if number.is_multiple_of(3) {
            handle.cancel().by("the guest").await.unwrap();
            say(&format!("cancelled {id}"));
        }
    }
}
