//! What the import draws at random: what siblings share of it, and what they do not.
#![deny(unsafe_code)]

use hearth_testkit::worker::check_siblings;
use serde_json::{Value, json};

fn check_main(source: &str) -> Value {
    check_siblings(&[("main.py", source)])
}

/// Imports NumPy from where set-up has put it. Without it, nothing boots.
const NUMPY: &str = concat!(
    "import sys\nsys.path.append('",
    env!("CARGO_MANIFEST_DIR"),
    "/../../.tools/python')\nimport numpy  # fetched by scripts/setup.sh test\n"
);

#[test]
fn siblings_share_no_randomness() {
    let source = r#"
import os, random, secrets, ssl, tempfile, uuid
random.seed(1); random.random(); uuid.uuid1(); uuid.uuid4(); ssl.RAND_bytes(8); tempfile.mktemp()
numpy.random.seed(1); numpy.random.random()
def handler(event, context):
    return {
        "random": random.random(), "uuid1": str(uuid.uuid1()), "uuid4": str(uuid.uuid4()), "ssl": ssl.RAND_bytes(8).hex(),
        "urandom": os.urandom(8).hex(), "secrets": secrets.token_hex(8), "tempfile": tempfile.mktemp(),
        "numpy": float(numpy.random.random()),
    }
"#;
    check_main(&format!("{NUMPY}{source}"));
}

#[test]
fn generators_without_a_seed_are_seeded_anew_and_others_are_left() {
    let source = r#"
import random
from os import urandom
fresh, seeded, restored = random.Random(), random.Random(7), random.Random()
restored.setstate(seeded.getstate())
again = random.Random(7)
again.seed()
fresh.gauss(0, 1)
class Mine(random.Random):
    pass
mine = Mine()
def handler(event, context):
    assert "drawn" not in getattr(urandom, "__module__", ""), urandom
    return {
        "fresh": fresh.random(), "again": again.random(), "mine": mine.random(), "gauss": fresh.gauss(0, 1),
        "same seeded": seeded.random(), "same restored": restored.random(),
    }
"#;
    assert_eq!(check_main(source), json!(null));
}

#[test]
fn numpys_generators_without_a_seed_are_seeded_anew() {
    let source = r#"
fresh, seeded = numpy.random.default_rng(), numpy.random.default_rng(7)
old, old_seeded = numpy.random.RandomState(), numpy.random.RandomState(7)
old.standard_normal()
spawned = numpy.random.default_rng(numpy.random.SeedSequence().spawn(2)[1])
def handler(event, context):
    return {
        "fresh": fresh.random(), "old": old.random_sample(), "normal": old.standard_normal(), "spawned": spawned.random(),
        "same seeded": seeded.random(), "same old": old_seeded.random_sample(),
    }
"#;
    assert_eq!(check_main(&format!("{NUMPY}{source}")), json!(null));
}

#[test]
fn bytes_drawn_at_import_are_counted_with_their_places() {
    let source = r#"
import os, secrets, uuid
from os import urandom
import multiprocessing.process
kept = os.urandom(16)
token = secrets.token_hex(8)
name = uuid.uuid4()
more = urandom(4)
def handler(event, context):
    process = multiprocessing.process.current_process()
    return {"authkey": bytes(process.authkey).hex(), "same token": token, "own": secrets.token_hex(8)}
"#;
    let drawn = check_main(source);
    assert_eq!(drawn["bytes"], 16 + 8 + 16 + 4);
    assert_eq!(
        drawn["places"],
        json!(["main.py:5", "main.py:6", "main.py:7"])
    );
}
