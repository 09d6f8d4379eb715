//! Forms: what was typed stays, every field has a place for its message.

use super::*;

#[test]
fn a_refused_form_keeps_what_was_typed() {
    let page = html(&new_page());
    assert_harmless(&page);
    // The parser drops one newline after the tag; the code's own first one stays.
    assert!(page.contains(">\n\n&#60;/textarea&#62;"), "{page}");
    assert!(page.contains("id=\"error-env\">A: must be shorter.</p>"));
    assert!(
        page.contains("<details class=\"more\" open"),
        "the field with the error is in sight"
    );
    assert!(page.contains("value=\"node\" disabled"));
    assert!(page.contains("value=\"internet\" disabled"));
    for starter in STARTERS {
        // Those of a runtime that is not there are not offered.
        let offered = page.contains(&format!("id=\"starter-{}\"", starter.key));
        assert_eq!(offered, starter.runtime == "python3", "{}", starter.key);
    }
}

#[test]
fn a_forms_outcome_reaches_every_field() {
    let shown = html(&FormOutcome {
        fields: FunctionForm::FIELDS,
        errors: FieldErrors::one("name", HOSTILE.into()),
        problem: None,
        revision: Some(HOSTILE.into()),
    });
    assert_harmless(&shown);
    for field in FunctionForm::FIELDS {
        assert!(
            shown.contains(&format!("id=\"error-{field}\" hx-swap-oob=\"true\"")),
            "{field}"
        );
    }
    assert!(!shown.contains("id=\"problem\""));
}

#[test]
fn every_field_with_a_message_has_a_place_for_it() {
    for (page, fields) in [
        (html(&new_page()), FunctionForm::FIELDS),
        (html(&code_page()), CODE_FIELDS),
        (html(&settings_page()), SettingsForm::FIELDS),
    ] {
        for field in fields {
            assert_eq!(
                page.matches(&format!("id=\"error-{field}\"")).count(),
                1,
                "{field}"
            );
        }
    }
}

#[test]
fn settings_name_variables_but_show_no_value() {
    let page = html(&settings_page());
    assert!(page.contains("value=\"DROP\" checked"));
    assert!(page.contains("value=\"KEEP\">"));
    // What is set stays, so that saving something else does not change it.
    assert!(page.contains("value=\"rules\" selected>"));
    assert!(page.contains("id=\"error-confirm\" role=\"alert\">Type the function"));
    assert!(page.contains("name=\"revision\" value=\"7.3\""));
    assert_harmless(&page);
}

#[test]
fn changing_forms_carry_the_sessions_token() {
    let pages = [
        html(&new_page()),
        html(&function(chrome(), history(Vec::new()))),
        html(&code_page()),
        html(&settings_page()),
    ];
    for page in pages.into_iter().chain(accounts::pages_of_a_session()) {
        let forms = page
            .split("<form")
            .skip(1)
            .filter(|form| form.contains("method=\"post\""));
        for form in forms {
            let form = form.split("</form>").next().unwrap_or(form);
            assert!(form.contains("name=\"csrf\" value=\"csrf-1\""), "{form}");
        }
        assert!(page.contains("hx-headers='{\"x-csrf-token\":\"csrf-1\"}'"));
    }
}
