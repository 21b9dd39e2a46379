//! Finding executions, open matters and workers.

use backstitch::core::attribute::AttributeValue;
use backstitch::engine::ErrorKind;
use backstitch::store::{AttentionPlace, RunInfo, RunNo};
use backstitch_api::http::{
    Attribute, Listing, Matter, Matters, Problem, Status, Summary, Worker, Workers, Workflow,
};
use jiff::Timestamp;

use super::{Service, instant, invalid, told};

/// Runs that one request looks through: a filter that fits few of many must not hold up the store.
/// The answer says where to go on.
const RUNS_SCANNED_MAX: usize = 10_000;

/// Runs that are read at a time.
const RUNS_PAGE: usize = 500;

/// Most executions, or open matters, in one answer.
pub const LIMIT_MAX: usize = 1_000;

/// Executions in one answer, unless the request says how many.
pub const LIMIT_DEFAULT: usize = 50;

/// Which executions are asked for; all, where nothing is said.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// In this namespace.
    pub namespace: String,
    /// With this status.
    pub status: Option<Status>,
    /// Of this workflow.
    pub workflow: Option<String>,
    /// Started at this instant or later.
    pub started_after: Option<Timestamp>,
    /// Started before this instant.
    pub started_before: Option<Timestamp>,
    /// With this search attribute.
    pub attribute: Option<(String, Attribute)>,
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// At most so many.
    pub limit: Option<usize>,
}

impl Service {
    /// The executions that fit a filter, newest first.
    ///
    /// # Errors
    /// `invalid` for a cursor or a limit that cannot be; trouble of the store.
    pub async fn list(&self, filter: &Filter) -> Result<Listing, Problem> {
        let limit = limit(filter.limit)?;
        let mut before = match &filter.cursor {
            None => RunNo(i64::MAX),
            Some(cursor) => {
                let run = cursor.parse().ok().filter(|run| *run > 0).map(RunNo);
                run.ok_or_else(|| no_cursor(cursor))?
            }
        };
        let (mut executions, mut scanned) = (Vec::new(), 0);
        loop {
            let page = self.runs(filter, before).await?;
            let is_last = page.len() < RUNS_PAGE;
            scanned += page.len();
            for info in page {
                // Numbers and instants go up together.
                if filter.started_after.is_some_and(|after| instant(info.created_at_us) < after) {
                    return Ok(Listing { executions, next_cursor: None });
                }
                before = info.run;
                if fits(filter, &info) {
                    executions.push(summary(info));
                }
                if executions.len() == limit {
                    return Ok(Listing { executions, next_cursor: Some(before.0.to_string()) });
                }
            }
            if is_last || scanned >= RUNS_SCANNED_MAX {
                let next_cursor = (!is_last).then(|| before.0.to_string());
                return Ok(Listing { executions, next_cursor });
            }
        }
    }

    async fn runs(&self, filter: &Filter, before: RunNo) -> Result<Vec<RunInfo>, Problem> {
        let runs = match &filter.attribute {
            None => self.engine().runs(before, RUNS_PAGE).await,
            Some((name, value)) => {
                let value = AttributeValue::from(value.clone());
                self.engine().find(name, &value, before, RUNS_PAGE).await
            }
        };
        runs.map_err(told)
    }

    /// Open matters that only a person can settle, oldest first.
    ///
    /// # Errors
    /// `invalid` for a cursor or a limit that cannot be; trouble of the store.
    pub async fn attention(
        &self,
        cursor: Option<&str>,
        at_most: Option<usize>,
    ) -> Result<Matters, Problem> {
        let limit = limit(at_most)?;
        let after = match cursor {
            None => AttentionPlace::START,
            Some(cursor) => place_of(cursor).ok_or_else(|| no_cursor(cursor))?,
        };
        let items = self.engine().attention(after, limit).await.map_err(told)?;
        let last = items.last().filter(|_| items.len() == limit);
        let next_cursor = last.map(|item| cursor_of(item.place()));
        let mut attention = Vec::new();
        for item in items {
            let new = match self.engine().info(item.run).await {
                Ok(info) => info.new,
                // Settled and deleted a moment ago.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(told(error)),
            };
            attention.push(Matter {
                namespace: new.namespace,
                id: new.id,
                run_id: new.run_id.to_string(),
                step: Some(item.ord).filter(|ord| *ord > 0),
                kind: item.kind,
                message: item.message,
                opened_at: Some(item.opened_at_us).filter(|us| *us > 0).map(instant),
            });
        }
        Ok(Matters { attention, next_cursor })
    }

    /// Who runs workflows here.
    pub fn workers(&self) -> Workers {
        let known = self.engine().workflows();
        let built_in = (!known.is_empty()).then(|| Worker {
            name: self.engine().options().worker.clone(),
            built_in: true,
            connected: true,
            draining: false,
            sdk: concat!("backstitch ", env!("CARGO_PKG_VERSION")).to_owned(),
            workflows: workflows(known),
            slots: None,
            leased: None,
        });
        let connected = self.engine().workers().into_iter().map(|worker| Worker {
            name: worker.name,
            built_in: false,
            connected: worker.connected,
            draining: worker.draining,
            sdk: worker.sdk,
            workflows: workflows(worker.workflows),
            slots: Some(worker.slots),
            leased: Some(worker.leased),
        });
        Workers { workers: built_in.into_iter().chain(connected).collect() }
    }
}

fn no_cursor(given: &str) -> Problem {
    let way_out = "take the `next_cursor` of the page before, or none";
    invalid(format!("{given:?} is no cursor; {way_out}"))
}

/// A place in the list of open matters as a cursor.
fn cursor_of(place: AttentionPlace) -> String {
    let AttentionPlace { opened_at_us, run, seq, ord } = place;
    format!("{opened_at_us}.{}.{seq}.{ord}", run.0)
}

fn place_of(cursor: &str) -> Option<AttentionPlace> {
    let mut parts = cursor.split('.');
    let place = AttentionPlace {
        opened_at_us: parts.next()?.parse().ok()?,
        run: RunNo(parts.next()?.parse().ok()?),
        seq: parts.next()?.parse().ok()?,
        ord: parts.next()?.parse().ok()?,
    };
    parts.next().is_none().then_some(place)
}

fn workflows(known: Vec<(String, String)>) -> Vec<Workflow> {
    known.into_iter().map(|(name, version)| Workflow { name, version }).collect()
}

fn limit(asked: Option<usize>) -> Result<usize, Problem> {
    match asked.unwrap_or(LIMIT_DEFAULT) {
        limit @ 1..=LIMIT_MAX => Ok(limit),
        limit => Err(invalid(format!("the limit is {limit}; it can be 1 to {LIMIT_MAX}"))),
    }
}

fn fits(filter: &Filter, info: &RunInfo) -> bool {
    let new = &info.new;
    new.namespace == filter.namespace
        && filter.status.is_none_or(|status| Status::from(info.update.status) == status)
        && filter.workflow.as_ref().is_none_or(|workflow| *workflow == new.workflow)
        && filter.started_before.is_none_or(|before| instant(info.created_at_us) < before)
}

fn summary(info: RunInfo) -> Summary {
    Summary {
        namespace: info.new.namespace,
        id: info.new.id,
        run_id: info.new.run_id.to_string(),
        workflow: info.new.workflow,
        version: info.new.version,
        status: info.update.status.into(),
        created_at: instant(info.created_at_us),
        closed_at: info.closed_at_us.map(instant),
    }
}
