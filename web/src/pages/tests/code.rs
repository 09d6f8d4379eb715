//! Code, differences, versions, and the chooser of events.

use super::*;
use crate::pages::DeployProblem;

#[test]
fn the_code_page_shows_the_tree_the_file_and_the_line() {
    let page = html(&code_page());
    assert_harmless(&page);
    // The way to the open file is unfolded, the other directory waits for a click.
    assert!(page.contains(
        "href=\"/functions/hello/code?path=pkg%2Fmod.py\" data-file=\"pkg/mod.py\" aria-current"
    ));
    assert!(page.contains("/functions/hello/code/files?version=2&dir=lib"));
    assert!(page.contains("data-line=\"7\""));
    assert!(page.contains("2.0 KiB"));
    let mut binary = code_page();
    binary.file.kind = FileKind::Binary;
    binary.chrome = reader();
    let page = html(&binary);
    assert!(page.contains("This file is not text."));
    assert!(!page.contains("id=\"review-button\""));
}

#[test]
fn a_diff_says_in_words_what_it_shows_in_colours() {
    let page = html(&CodeReviewPartial {
        diff: diff(),
        version: 2,
    });
    assert_harmless(&page);
    for expected in [
        "this changes 3 files, 1 setting",
        "removed: ",
        "added: ",
        "+1,200 −1",
        "old.py → ",
        "And 2 more files.",
        "set to another value",
    ] {
        assert!(page.contains(expected), "{expected} in {page}");
    }
    assert!(
        html(&CodeReviewPartial {
            diff: DiffView::default(),
            version: 1
        })
        .contains("No changes.")
    );
}

#[test]
fn only_inactive_versions_can_be_gone_back_to() {
    let page = html(&versions_page());
    assert_harmless(&page);
    for expected in [
        "href=\"/functions/hello/versions/1/activate\" data-method=\"post\"",
        "data-confirm-title=\"Roll back to version 1?\"",
        "/functions/hello/versions/3/diff?against=2",
        "/functions/hello/versions/1/code.zip",
        "first version",
        "env.SECRET: set → set to another value",
        "9f86d081884c<",
    ] {
        assert!(page.contains(expected), "{expected} in {page}");
    }
    assert!(!page.contains("/versions/3/activate"));
    assert!(!page.contains("/versions/1/diff"));
}

#[test]
fn two_versions_are_compared_on_a_page_of_their_own() {
    let page = html(&VersionDiffPage {
        chrome: chrome(),
        head: head(),
        before: 1,
        after: 3,
        numbers: vec![3, 2, 1],
        diff: diff(),
    });
    assert!(page.contains("From version 1 to 3"));
    assert!(page.contains("<option value=\"3\" selected>"));
    let page = html(&VersionActivatePage {
        chrome: chrome(),
        head: head(),
        version: 1,
        problem: Some(DeployProblem {
            title: HOSTILE.into(),
            ..DeployProblem::default()
        }),
    });
    assert_harmless(&page);
    assert!(
        page.contains("Activate version 1") && page.contains("name=\"revision\" value=\"7.3\"")
    );
}

#[test]
fn the_chooser_offers_saved_events_and_samples() {
    let mut picker = EventPicker {
        function: "hello".into(),
        saved: vec![SavedEventRow {
            id: 7,
            name: HOSTILE.into(),
        }],
        picked: "saved-7".into(),
        name: HOSTILE.into(),
        can_write: true,
        said: HOSTILE.into(),
        error: "Give the event a name.".into(),
    };
    let page = html(&picker);
    assert_harmless(&page);
    assert!(page.contains("<option value=\"saved-7\""));
    assert!(page.contains("value=\"sample-http\""));
    assert!(page.contains("id=\"error-event-name\">Give the event a name."));
    picker.can_write = false;
    assert!(!html(&picker).contains("save-event"));
}
