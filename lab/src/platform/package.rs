//! What a function is uploaded as.

use std::io::{Cursor, Write};

use serde_json::Value;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The `bootstrap` of the lab's functions for the runtime `provided`: a program that is beside the other end of the Runtime API in each sandbox.
/// The setting `handler` says which of its functions.
pub(crate) const BOOTSTRAP: &str = "#!/opt/hearth/provided/hearth-workloads\n";

/// A zip with the source, filled up with random bytes, which nothing can compress.
pub(crate) fn archive(file: &str, source: &str, image_mb: f64) -> zip::result::ZipResult<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    // A bootstrap is run.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .unix_permissions(0o755);
    archive.start_file(file, options)?;
    archive.write_all(source.as_bytes())?;
    let mut left = (image_mb * 1024.0 * 1024.0) as usize;
    if left > 0 {
        archive.start_file("filler.file", options)?;
        let mut random = fastrand::Rng::with_seed(1);
        let mut block = vec![0; 1 << 20];
        while left > 0 {
            random.fill(&mut block);
            let part = left.min(block.len());
            archive.write_all(&block[..part])?;
            left -= part;
        }
    }
    Ok(archive.finish()?.into_inner())
}

/// A form with settings and a file of code: its media type and its body.
pub(crate) fn form(settings: &Value, name: &str, code: &[u8]) -> (String, Vec<u8>) {
    // In none of the parts: a number of 128 bits that is not in the code but by a chance of that size.
    let boundary = format!("lab{:032x}", fastrand::u128(..));
    let mut body = Vec::with_capacity(code.len() + 2_048);
    for (name, value) in settings.as_object().into_iter().flatten() {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let part = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        );
        body.extend_from_slice(part.as_bytes());
    }
    let head = format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"code\"; filename=\"{name}\"\r\n\
         content-type: application/octet-stream\r\n\r\n"
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(code);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_as_large_as_asked() {
        let small = archive("main.py", "x", 0.0).expect("an archive");
        let large = archive("main.py", "x", 1.5).expect("an archive");
        let filler = large.len() - small.len();
        assert!((1_572_864..1_574_000).contains(&filler), "{filler}");
    }
}
