//! Copies of versions, which the server makes.

use serde_json::Value;

use super::hearth::{Hearth, HearthError};

impl Hearth {
    /// Has the server copy a version of a function, as `asked` for by `POST /api/v1/functions/{name}/copies`. Returns the copy
    /// as the server shows it; it is ready then.
    ///
    /// # Errors
    /// As [`Self::deploy`].
    pub async fn copy(
        &self,
        function: &str,
        name: &str,
        asked: &Value,
    ) -> Result<Value, HearthError> {
        let path = format!("/api/v1/functions/{function}/copies");
        let content = ("application/json", asked.to_string().into_bytes());
        let copy = self.make(name, &path, content).await?;
        Ok(copy.json())
    }
}
