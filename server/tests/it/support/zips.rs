//! Zip archives: good ones from a writer, hostile ones byte by byte.

use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// A good archive, deflated.
pub fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        zip.start_file(*name, SimpleFileOptions::default())
            .expect("a name");
        zip.write_all(content).expect("memory");
    }
    zip.finish().expect("an archive").into_inner()
}

/// One entry of a [`handmade`] archive; nothing about it has to make sense.
#[derive(Clone)]
pub struct Entry {
    /// Raw name.
    pub name: String,
    /// Bytes as they lie in the archive.
    pub data: Vec<u8>,
    /// Unix mode with the file's type.
    pub mode: u32,
    /// Compression method: 0 stored, 8 deflate, 12 bzip2, 99 AES.
    pub method: u16,
    /// General purpose flags; bit 0 is "encrypted".
    pub flags: u16,
}

impl Entry {
    /// A stored regular file.
    pub fn file(name: &str, data: &[u8]) -> Self {
        Self {
            name: name.into(),
            data: data.into(),
            mode: 0o100_644,
            method: 0,
            flags: 0,
        }
    }
}

/// An archive as the entries say.
pub fn handmade(entries: &[Entry]) -> Vec<u8> {
    let (mut body, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let offset = u32::try_from(body.len()).expect("small archives");
        let common = common_fields(entry);
        body.extend(b"PK\x03\x04");
        body.extend(&common);
        body.extend(entry.name.as_bytes());
        body.extend(&entry.data);

        directory.extend(b"PK\x01\x02");
        // Made by version 2.0 on Unix, which is what gives the mode its meaning.
        directory.extend(0x0314_u16.to_le_bytes());
        directory.extend(&common);
        // No comment, disk 0, no internal attributes.
        directory.extend([0; 6]);
        directory.extend((entry.mode << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(entry.name.as_bytes());
    }
    let (start, size) = (body.len() as u32, directory.len() as u32);
    // The field has 16 bits; with more entries than that the count is as wrong as in a hostile archive.
    let count = entries.len().min(0xfffe) as u16;
    body.extend(&directory);
    body.extend(b"PK\x05\x06\0\0\0\0");
    body.extend(count.to_le_bytes());
    body.extend(count.to_le_bytes());
    body.extend(size.to_le_bytes());
    body.extend(start.to_le_bytes());
    body.extend([0; 2]);
    body
}

/// From "version needed" to the lengths of name and extra field: the same in both headers.
fn common_fields(entry: &Entry) -> Vec<u8> {
    let size = entry.data.len() as u32;
    let mut fields = Vec::new();
    fields.extend(20_u16.to_le_bytes());
    fields.extend(entry.flags.to_le_bytes());
    fields.extend(entry.method.to_le_bytes());
    // Midnight, 1 January 1980.
    fields.extend([0, 0, 0x21, 0]);
    fields.extend(crc32(&entry.data).to_le_bytes());
    fields.extend(size.to_le_bytes());
    fields.extend(size.to_le_bytes());
    fields.extend((entry.name.len() as u16).to_le_bytes());
    fields.extend([0; 2]);
    fields
}

fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}
