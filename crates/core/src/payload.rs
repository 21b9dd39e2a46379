//! Bytes of the user, which the engine carries and never decodes.

use std::collections::BTreeMap;

use bytes::Bytes;

/// Bytes plus a small map of metadata.
///
/// The engine never looks into `data`. Metadata without an `encoding` means JSON, so that the
/// usual payload costs nothing extra.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Payload {
    /// The encoded value.
    #[prost(bytes = "bytes", tag = "1")]
    pub data: Bytes,
    /// `encoding` (absent: `json`), later `codec`, `key_id`, `sensitive`, `ref`.
    #[prost(btree_map = "string, string", tag = "2")]
    pub metadata: BTreeMap<String, String>,
}

impl Payload {
    /// A payload of JSON text.
    pub fn json(data: impl Into<Bytes>) -> Payload {
        Payload { data: data.into(), metadata: BTreeMap::new() }
    }

    /// How `data` is encoded; `json` unless the metadata says otherwise.
    pub fn encoding(&self) -> &str {
        self.metadata.get("encoding").map_or("json", String::as_str)
    }

    /// SHA-256 of `data`: by this, and only by this, sameness is judged.
    pub fn digest(&self) -> [u8; 32] {
        hmac_sha256::Hash::hash(&self.data)
    }
}
