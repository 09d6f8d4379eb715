//! Copies of versions, which the server makes.

use hyper::Method;
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
        self.names().push(name.to_owned());
        let path = format!("/api/v1/functions/{function}/copies");
        let content = Some(("application/json", asked.to_string().into_bytes()));
        let copy = self.client().send(Method::POST, &path, content).await?;
        Ok(copy.json())
    }
}
