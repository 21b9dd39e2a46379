//! Starting executions by name.

use std::collections::BTreeSet;
use std::time::Duration;

use backstitch::IntoDuration;
use backstitch::core::attribute::AttributeChange;
use backstitch::engine::UnknownWorkflows;
use backstitch::engine::start::{Conflict, Retention, Reuse, StartRequest};
use backstitch_api::http::{self as wire, Problem, StartExecution, Started, Value};

use super::{NAMESPACE_DEFAULT, Service, invalid, told, who};

/// What to do where the version is not clear.
const SAY_IT: &str = "say its `version` (on the command line, --workflow-version)";

impl Service {
    /// Starts an execution; what is answered is durable.
    ///
    /// # Errors
    /// As [`backstitch::Client::start`]; `invalid` when the version has to be said and is not.
    pub async fn start(
        &self,
        start: StartExecution,
        request_id: Option<String>,
    ) -> Result<Started, Problem> {
        let namespace = start.namespace.unwrap_or_else(|| NAMESPACE_DEFAULT.to_owned());
        let may_begin_anew = matches!(start.conflict, Some(wire::Conflict::Terminate))
            || matches!(start.reuse, Some(wire::Reuse::Allow | wire::Reuse::AllowIfFailed));
        let version = match start.version {
            Some(version) => version,
            None => match self.only_version(&start.workflow) {
                Ok(only) => only,
                // One that is repeated gets its answer, whoever works here by now.
                Err(why) if may_begin_anew => return Err(why),
                Err(why) => match self.engine().newest(&namespace, &start.id).await {
                    Ok(info) if info.new.workflow == start.workflow => info.new.version,
                    Ok(_) | Err(_) => return Err(why),
                },
            },
        };
        let attributes = start.attributes.into_iter().map(|(name, value)| {
            let value = Some(value.into());
            AttributeChange { name, value }
        });
        let request = StartRequest {
            namespace,
            id: start.id,
            workflow: start.workflow,
            version,
            input: start.input.unwrap_or_else(Value::null).payload(),
            conflict: match start.conflict {
                None | Some(wire::Conflict::UseExisting) => Conflict::UseExisting,
                Some(wire::Conflict::Fail) => Conflict::Fail,
                Some(wire::Conflict::Terminate) => Conflict::Terminate,
            },
            reuse: match start.reuse {
                None | Some(wire::Reuse::Reject) => Reuse::Reject,
                Some(wire::Reuse::AllowIfFailed) => Reuse::AllowIfFailed,
                Some(wire::Reuse::Allow) => Reuse::Allow,
            },
            started_by: who(start.by),
            deadline: start.deadline.map(|text| duration("deadline", &text)).transpose()?,
            retention: match start.retention.as_deref() {
                None => Retention::Usual,
                Some("forever") => Retention::Forever,
                Some(text) => Retention::For(duration("retention", text)?),
            },
            attributes: attributes.collect(),
            request_id: request_id.unwrap_or_default(),
            restart: None,
        };
        let (namespace, id) = (request.namespace.clone(), request.id.clone());
        let answer = self.engine().start(request).await.map_err(told)?;
        Ok(Started {
            namespace,
            id,
            run_id: answer.run_id.to_string(),
            created: answer.created,
            status: answer.status.into(),
        })
    }

    /// The version of a workflow that is known in one, here and at the workers that take runs.
    fn only_version(&self, workflow: &str) -> Result<String, Problem> {
        let workers = self.engine().workers().into_iter().filter(|worker| !worker.draining);
        let known = workers.flat_map(|worker| worker.workflows).chain(self.engine().workflows());
        let versions: BTreeSet<String> =
            known.filter(|(name, _)| name == workflow).map(|(_, version)| version).collect();
        let versions: Vec<String> = versions.into_iter().collect();
        let refuses = self.engine().options().unknown_workflows == UnknownWorkflows::Refused;
        match versions.as_slice() {
            [only] => Ok(only.clone()),
            // The engine says which ones there are.
            [] if self.is_owner() && refuses => Ok("1".to_owned()),
            [] => Err(invalid(format!(
                "which version of workflow {workflow:?} is to be started? No worker that knows it is \
                 known here; {SAY_IT}"
            ))),
            several => Err(invalid(format!(
                "which version of workflow {workflow:?} is to be started? It is known in several: {}; \
                 {SAY_IT}",
                several.join(", ")
            ))),
        }
    }
}

/// Reads a duration as people write it.
pub(super) fn duration(what: &str, text: &str) -> Result<Duration, Problem> {
    let us = text.into_us().map_err(|why| invalid(format!("the {what}: {why}")))?;
    Ok(Duration::from_micros(us))
}
