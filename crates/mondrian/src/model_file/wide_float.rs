//! Floats in JSON, infinities and NaN included: those three are written as texts.
//!
//! ```
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Params {
//!     #[serde(with = "mondrian::internals::model_file::wide_float")]
//!     lifetime: f64,
//! }
//! let json = serde_json::to_string(&Params { lifetime: f64::INFINITY }).unwrap();
//! assert_eq!(json, r#"{"lifetime":"inf"}"#);
//! assert_eq!(serde_json::from_str::<Params>(&json).unwrap().lifetime, f64::INFINITY);
//! ```

use serde::{Deserialize, Deserializer, Serializer};

/// Writes a finite number as a number, any other as `"inf"`, `"-inf"` or `"NaN"`.
///
/// # Errors
/// The serialiser's own.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() { serializer.serialize_f64(*value) } else { serializer.collect_str(value) }
}

/// Reads what [`serialize`] wrote.
///
/// # Errors
/// The deserialiser's own, and one for any other text.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Wide {
        Number(f64),
        Text(String),
    }
    match Wide::deserialize(deserializer)? {
        Wide::Number(value) => Ok(value),
        Wide::Text(text) => match text.as_str() {
            "inf" => Ok(f64::INFINITY),
            "-inf" => Ok(f64::NEG_INFINITY),
            "NaN" => Ok(f64::NAN),
            _ => Err(serde::de::Error::custom("a number, \"inf\", \"-inf\" or \"NaN\" expected")),
        },
    }
}
