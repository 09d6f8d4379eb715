//! What nobody would upload.

use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is uploaded: no panic, nothing outside, nothing left behind (`Place::unpack` asserts both).
    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let _ = Place::new().unpack(Code::Zip(bytes.into()));
    }

    /// A valid archive with a few bytes changed.
    #[test]
    fn mutated_archives_do_no_harm(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut zip = raw_zip(&[Raw::new(b"main.py"), Raw::new(b"a/b.py"), Raw::new(b"c/")]);
        for (at, byte) in changes {
            let at = at.index(zip.len());
            zip[at] = byte;
        }
        let _ = Place::new().unpack(Code::Zip(zip.into()));
    }

    /// Arbitrary names stay inside or are refused.
    #[test]
    fn arbitrary_names_stay_inside(name in "[a-zA-Z./\\\\:\\x00-\\x1f]{0,40}") {
        let place = Place::new();
        let zip = raw_zip(&[Raw::new(b"main.py"), Raw::new(name.as_bytes())]);
        if place.unpack(Code::Zip(zip.into())).is_ok() {
            prop_assert!(!name.contains("..") || name.split('/').all(|part| part != ".."));
            prop_assert!(!name.starts_with('/'));
        }
    }
}
