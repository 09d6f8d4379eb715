//! The overview and the list of functions.

use super::*;

#[test]
fn an_empty_overview_leads_to_the_first_function() {
    let mut page = overview();
    page.is_empty = true;
    let shown = html(&page);
    assert!(shown.contains("Deploy your first function"));
    for starter in STARTERS {
        assert!(shown.contains(&format!("/new?template={}", starter.key)));
    }
    page.chrome = reader();
    let shown = html(&page);
    assert!(!shown.contains("/new"), "{shown}");
    let list = html(&FunctionsPage {
        chrome: chrome(),
        list: ListView::default(),
    });
    assert!(list.contains("Deploy your first function") && !list.contains("list-search"));
}

#[test]
fn the_overview_says_how_things_are() {
    let page = html(&overview());
    for expected in [
        "data-live-topic=\"overview=1\"",
        "data-value=\"12345\">12,345<",
        "/functions/hello/invocations/id-1",
        "/functions?state=ready",
        "1 not available",
        "aria-current=\"page\"",
    ] {
        assert!(page.contains(expected), "{expected} in {page}");
    }
    assert_harmless(&page);
}

#[test]
fn the_list_shows_state_and_numbers() {
    let table = html(&FunctionsTable {
        chrome: chrome(),
        list: list(),
    });
    for expected in [
        "/functions/hello",
        "failed",
        "1 of 1,234 functions",
        "data-live=\"hello/p50\" title=\"\">412 µs",
        "data-live=\"hello/p99\" title=\"needs 100 samples, has 9\">–",
        "aria-sort=\"ascending\"",
    ] {
        assert!(table.contains(expected), "{expected} in {table}");
    }
    assert_harmless(&html(&FunctionsPage {
        chrome: chrome(),
        list: list(),
    }));
    let mut hostile = list();
    hostile.rows[0].name = HOSTILE.into();
    assert_harmless(&html(&FunctionsTable {
        chrome: chrome(),
        list: hostile,
    }));
}

#[test]
fn addresses_of_the_list_say_only_what_is_not_usual() {
    let mut query = ListQuery {
        sort: "name".into(),
        page: 1,
        ..ListQuery::default()
    };
    assert_eq!(query.with_page(1), "");
    assert_eq!(query.with_page(2), "?page=2");
    assert_eq!(query.sorted_by("p99"), "?sort=-p99");
    assert_eq!(query.sorted_by("name"), "?sort=-name");
    query.search = "a&b".into();
    query.sort = "p99".into();
    query.descending = true;
    assert_eq!(query.sorted_by("p99"), "?q=a%26b&sort=p99");
    assert_eq!(query.topic(), "list=1&q=a%26b&sort=-p99");
    assert_eq!(query.order_of("p99"), "descending");
}

#[test]
fn the_functions_page_follows_the_tokens_rights() {
    let page = html(&function(chrome(), history(Vec::new())));
    for expected in [
        "id=\"invoke-button\"",
        "/functions/hello/settings",
        "5 requests",
        "No invocations yet.",
    ] {
        assert!(page.contains(expected), "{expected} in {page}");
    }
    assert_harmless(&page);
    let page = html(&function(reader(), history(Vec::new())));
    assert!(!page.contains("id=\"invoke-button\""), "{page}");
    for tab in Tab::ALL {
        let link = format!(
            "href=\"/functions/hello{}\" id=\"{}\"",
            tab.path(),
            tab.id()
        );
        assert_eq!(page.matches(&link).count(), 1, "{link}");
    }
    assert_eq!(page.matches("aria-current=\"page\"").count(), 1);
}
