//! Application state, injected by type.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::sync::Arc;

use backstitch_core::failure::{Class, Failure, Origin};

/// One value per type.
#[derive(Clone, Default)]
pub(crate) struct StateMap(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl StateMap {
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// The value of type `T`.
    ///
    /// # Panics
    /// With an attention failure when there is none: the configuration has to be mended, and the
    /// step waits, blocked, until it is.
    pub fn get<T: Send + Sync + 'static>(&self) -> &T {
        let value = self.0.get(&TypeId::of::<T>()).and_then(|value| value.downcast_ref());
        value.unwrap_or_else(|| {
            let name = type_name::<T>();
            let message = format!(
                "no state of type {name} was given; add .state(…) with one before run(), then \
                 retry the step"
            );
            let failure = Failure::new(Class::Attention, Origin::Engine, "NoState", message);
            std::panic::resume_unwind(Box::new(failure))
        })
    }
}
