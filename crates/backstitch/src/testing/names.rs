//! How a test names a step.

use backstitch_core::id::Key;

/// Whether `step` names what has this key: by the name alone (`reserve`, whichever it is), with the
/// branches before it (`west/reserve`), or as the key is printed (`west/reserve#2`).
pub(super) fn is_named(key: &Key, step: &str) -> bool {
    let printed = key.to_string();
    let path = printed.rsplit_once('#').map_or(printed.as_str(), |(path, _)| path);
    step == key.name || step == printed || step == path
}
