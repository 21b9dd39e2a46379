//! Who offers changes to a store.

/// How a handle stands to its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Owns it, or did, under this fence.
    Owner {
        /// Larger than that of every owner before it.
        fence: u64,
    },
    /// Stands beside the owner, whoever that is: it begins runs and puts rows into inboxes.
    Guest,
}

impl Role {
    /// The fence under which this one writes.
    pub(crate) fn fence(self) -> u64 {
        match self {
            Role::Owner { fence } => fence,
            Role::Guest => GUEST_FENCE,
        }
    }
}

/// The fence of whoever owns nothing; that of every owner is larger.
pub(crate) const GUEST_FENCE: u64 = 0;
