//! Search attributes at the door.

use std::collections::BTreeSet;

use backstitch_core::attribute::{AttributeChange, AttributeValue};
use backstitch_core::id::name_defect;
use backstitch_core::limits::{ATTRIBUTE_TEXT_BYTES_MAX, ATTRIBUTES_MAX};
use backstitch_store::{RunInfo, RunNo};

use crate::engine::Engine;
use crate::error::{Error, ErrorKind};

/// Says what is wrong with a search attribute; `None` if it can be set.
pub fn attribute_defect(change: &AttributeChange) -> Option<String> {
    let name = &change.name;
    let defect = name_defect("name of the search attribute", name);
    defect.or_else(|| match &change.value {
        Some(AttributeValue::Text(text)) if text.len() > ATTRIBUTE_TEXT_BYTES_MAX => Some(format!(
            "the search attribute {name:?} has {} bytes; at most {ATTRIBUTE_TEXT_BYTES_MAX} are \
             allowed",
            text.len()
        )),
        Some(AttributeValue::Real(number)) if number.is_nan() => {
            Some(format!("the search attribute {name:?} is not a number, and would never be found"))
        }
        Some(
            AttributeValue::Text(_)
            | AttributeValue::Integer(_)
            | AttributeValue::Real(_)
            | AttributeValue::Flag(_)
            | AttributeValue::Instant(_),
        )
        | None => None,
    })
}

pub(crate) fn check_attributes(changes: &[AttributeChange]) -> Result<(), Error> {
    let invalid = |why: String| Err(Error::new(ErrorKind::Invalid, why));
    if changes.len() > ATTRIBUTES_MAX {
        let count = changes.len();
        return invalid(format!("{count} search attributes; at most {ATTRIBUTES_MAX} are allowed"));
    }
    if let Some(defect) = changes.iter().find_map(attribute_defect) {
        return invalid(defect);
    }
    let mut names = BTreeSet::new();
    match changes.iter().find(|change| !names.insert(&change.name)) {
        Some(twice) => invalid(format!("the search attribute {:?} is given twice", twice.name)),
        None => Ok(()),
    }
}

impl Engine {
    /// Runs that carry a search attribute with this value, newest first, below `before`.
    ///
    /// # Errors
    /// Trouble of the store.
    pub async fn find(
        &self,
        name: &str,
        value: &AttributeValue,
        before: RunNo,
        limit: usize,
    ) -> Result<Vec<RunInfo>, Error> {
        Ok(self.shared.store.find(name, value, before, limit).await?)
    }
}
