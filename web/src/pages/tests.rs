//! Each page, rendered: what it must say, and that nothing a function or a user wrote becomes markup.

use askama::Template;
use jiff::{SignedDuration, Timestamp};

mod accounts;
mod chains;
mod code;
mod forms;
mod history;
mod ingress;
mod lab;
mod network;
mod overview;
mod samples;
mod samples_code;

use super::*;
use crate::chrome::{Badge, Chrome, Section, Tone};
use crate::json::JsonText;
use crate::live::Values;
use crate::sparkline::Sparkline;
use crate::stage_bar::{StageBar, StageTimes};
use crate::starters::STARTERS;
use samples::*;
use samples_code::*;

#[test]
fn pages_have_no_inline_script_style_or_handler() {
    let pages = [
        html(&LoginPage::default()),
        html(&FunctionsPage {
            chrome: chrome(),
            list: list(),
        }),
        html(&overview()),
        html(&new_page()),
        html(&function(chrome(), history(vec![history_row("id-1")]))),
        html(&invocations_page(FilterText::default(), None)),
        html(&logs_page("", vec![log_line()])),
        html(&InvokeOutcomePartial { outcome: outcome() }),
        html(&code_page()),
        html(&versions_page()),
        html(&settings_page()),
    ];
    let pages = pages.into_iter().chain([html(&ingress::page())]);
    let pages = pages.chain(chains::pages()).chain(lab::pages());
    for page in pages.chain(accounts::pages()) {
        for forbidden in [
            " style=",
            "<style",
            " onclick",
            " onload",
            " onsubmit",
            "javascript:",
            "hx-on",
            "http-equiv",
        ] {
            assert!(!page.contains(forbidden), "{forbidden} in {page}");
        }
        for script in page.split("<script").skip(1) {
            assert!(script.contains("src=\"/static/"), "{script}");
        }
        for address in page.split("src=\"").chain(page.split("href=\"")).skip(1) {
            assert!(
                !address.starts_with("http"),
                "an asset from another host: {address}"
            );
        }
    }
}

#[test]
fn every_label_and_description_names_an_element() {
    let pages = [
        html(&LoginPage::default()),
        html(&new_page()),
        html(&function(chrome(), history(Vec::new()))),
        html(&code_page()),
        html(&versions_page()),
        html(&settings_page()),
    ];
    let pages = pages.into_iter().chain([html(&ingress::page())]);
    let pages = pages.chain(chains::pages());
    for page in pages.chain(accounts::pages()) {
        let values = |attribute: &str| -> Vec<String> {
            page.split(&format!(" {attribute}=\""))
                .skip(1)
                .filter_map(|rest| rest.split('"').next())
                .flat_map(str::split_ascii_whitespace)
                .map(str::to_owned)
                .collect()
        };
        let ids = values("id");
        for id in ["for", "aria-describedby", "aria-labelledby", "data-copy"]
            .into_iter()
            .flat_map(values)
        {
            assert_eq!(
                ids.iter().filter(|known| **known == id).count(),
                1,
                "{id} in {page}"
            );
        }
    }
}

#[test]
fn errors_have_a_page_with_the_requests_id() {
    let mut page = ErrorPage {
        chrome: None,
        status: 404,
        title: "Not found".into(),
        detail: HOSTILE.into(),
        request_id: "r-1".into(),
    };
    let shown = html(&page);
    assert!(
        shown.contains("404") && shown.contains("<code>r-1</code>") && !shown.contains("/logout")
    );
    assert_harmless(&shown);
    page.chrome = Some(chrome());
    assert!(html(&page).contains("/logout"));
}
