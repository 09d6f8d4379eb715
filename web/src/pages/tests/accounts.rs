//! Log-in, set-up, account, users, tokens, audit: what they say, and that nothing typed becomes markup.

use super::*;

fn session(current: bool) -> SessionRow {
    SessionRow {
        id: 7,
        device: "Firefox on Linux".into(),
        agent: HOSTILE.into(),
        address: "192.0.2.1".into(),
        created: moment(),
        seen: moment(),
        current,
    }
}

fn person() -> PersonRow {
    PersonRow {
        name: "ada".into(),
        role: "operator",
        disabled: false,
        created: moment(),
        last_login: None,
        sessions: 2,
        is_you: false,
    }
}

fn setup() -> SetupPage {
    SetupPage {
        done: false,
        code: HOSTILE.into(),
        name: HOSTILE.into(),
        errors: FieldErrors::one("name", "Must be right.".into()),
    }
}

fn login() -> LoginPage {
    LoginPage {
        has_users: true,
        name: HOSTILE.into(),
        ..LoginPage::default()
    }
}

fn account() -> AccountPage {
    AccountPage {
        chrome: chrome(),
        rights: "an operator".into(),
        sessions: vec![session(true), session(false)],
        errors: FieldErrors::default(),
    }
}

fn accounts() -> AccountsPage {
    AccountsPage {
        chrome: chrome(),
        accounts: vec![person()],
        form: NewPerson {
            name: HOSTILE.into(),
            role: "viewer".into(),
            typed: true,
        },
        errors: FieldErrors::one("password", "Must be right.".into()),
        made: None,
    }
}

fn person_page() -> PersonPage {
    PersonPage {
        chrome: chrome(),
        person: person(),
        sessions: vec![session(false)],
        errors: FieldErrors::default(),
        problem: HOSTILE.into(),
        made: Some(MadePassword {
            name: "ada".into(),
            password: "abcde-fghjk".into(),
        }),
    }
}

fn token(id: i64) -> TokenRow {
    TokenRow {
        id,
        name: HOSTILE.into(),
        rights: "read, write".into(),
        scope: String::new(),
        created: moment(),
        used: None,
        expires: None,
        is_yours: false,
    }
}

fn tokens() -> TokensPage {
    TokensPage {
        chrome: chrome(),
        tokens: vec![token(3)],
        form: NewTokenForm::default(),
        errors: FieldErrors::default(),
        made: Some(MadeToken {
            name: HOSTILE.into(),
            secret: "hth_secret".into(),
        }),
        problem: String::new(),
    }
}

fn secrets() -> SecretsPage {
    SecretsPage {
        chrome: chrome(),
        secrets: vec![SecretRow {
            name: "stripe".into(),
            functions: vec!["shop".into(), "till".into()],
            created: moment(),
            updated: moment(),
            used: None,
        }],
        name: HOSTILE.into(),
        errors: FieldErrors::one("name", "Must be right.".into()),
        problem: HOSTILE.into(),
    }
}

#[test]
fn secrets_are_listed_and_changed_by_who_may() {
    let page = html(&secrets());
    assert!(page.contains("href=\"/functions/shop\"") && page.contains("/secrets/stripe/delete"));
    let reader = SecretsPage {
        chrome: Chrome {
            can_write: false,
            ..chrome()
        },
        secrets: Vec::new(),
        ..secrets()
    };
    let page = html(&reader);
    assert!(page.contains("id=\"no-secrets\"") && !page.contains("id=\"add-secret\""));
}

fn audit() -> AuditPage {
    AuditPage {
        chrome: chrome(),
        rows: vec![AuditRow {
            time: moment(),
            kind: "",
            actor: HOSTILE.into(),
            action: "session.login_failed".into(),
            target: HOSTILE.into(),
            address: "192.0.2.1".into(),
            request_id: "r-1".into(),
            detail: HOSTILE.into(),
        }],
        actions: &["function.create", "session.login_failed"],
        actor: HOSTILE.into(),
        action: "session.login_failed".into(),
        target: String::new(),
        before: Some("9".into()),
        next: Some("5".into()),
    }
}

/// Every page of this part of the console.
pub(super) fn pages() -> Vec<String> {
    vec![
        html(&login()),
        html(&setup()),
        html(&account()),
        html(&accounts()),
        html(&person_page()),
        html(&tokens()),
        html(&secrets()),
        html(&audit()),
    ]
}

/// Those that have a session.
pub(super) fn pages_of_a_session() -> Vec<String> {
    pages().split_off(2)
}

#[test]
fn nothing_typed_becomes_markup() {
    for page in pages() {
        assert_harmless(&page);
    }
}

#[test]
fn a_fresh_server_leads_to_the_setup_and_still_takes_a_token() {
    let fresh = html(&LoginPage::default());
    assert!(fresh.contains("href=\"/setup\"") && !fresh.contains("id=\"login-name\""));
    assert!(fresh.contains("id=\"token-login\" open"));
    let usual = html(&login());
    assert!(!usual.contains("href=\"/setup\"") && usual.contains("id=\"login-password-submit\""));
    assert!(usual.contains("id=\"token-login\">") && usual.contains("id=\"login-token\""));
    let refused = LoginPage {
        error: "Unknown token.".into(),
        ..login()
    };
    assert!(html(&refused).contains("id=\"token-login\" open"));
    let done = html(&SetupPage {
        done: true,
        ..SetupPage::default()
    });
    assert!(done.contains("id=\"setup-done\"") && !done.contains("<form"));
}

#[test]
fn the_own_session_cannot_be_ended_from_its_list() {
    let page = html(&account());
    assert_eq!(page.matches("/account/sessions/7/end").count(), 1);
    assert!(page.contains("this session") && page.contains("id=\"end-others\""));
    let alone = AccountPage {
        sessions: vec![session(true)],
        ..account()
    };
    assert!(!html(&alone).contains("id=\"end-others\""));
    assert!(html(&person_page()).contains("/users/ada/sessions/7/end"));
}

#[test]
fn a_token_session_has_no_password() {
    let page = AccountPage {
        chrome: Chrome {
            user_name: String::new(),
            token_name: "ci".into(),
            ..chrome()
        },
        ..account()
    };
    let page = html(&page);
    assert!(!page.contains("id=\"password-form\"") && page.contains("API token <b>ci</b>"));
}

#[test]
fn only_admins_are_led_to_the_administration() {
    for (can_admin, led) in [(true, true), (false, false)] {
        let page = AccountPage {
            chrome: Chrome {
                can_admin,
                ..chrome()
            },
            ..account()
        };
        let page = html(&page);
        for address in ["/users", "/tokens", "/audit"] {
            let link = format!("href=\"{address}\"");
            assert_eq!(page.contains(&link), led, "{address}");
        }
    }
}

#[test]
fn the_last_admin_question_is_asked_in_place() {
    let page = html(&person_page());
    assert!(page.contains("id=\"disable-button\"") && !page.contains("id=\"enable-button\""));
    assert!(page.contains("id=\"made-secret\" tabindex=\"0\">abcde-fghjk<"));
    let disabled = PersonPage {
        person: PersonRow {
            disabled: true,
            ..person()
        },
        ..person_page()
    };
    let page = html(&disabled);
    assert!(page.contains("id=\"enable-button\"") && page.contains("id=\"is-disabled\""));
}

#[test]
fn tokens_say_when_they_end_and_the_own_one_stays() {
    let ended = Moment {
        at: moment().now,
        now: moment().now,
    };
    let page = TokensPage {
        tokens: vec![
            TokenRow {
                expires: Some(ended),
                ..token(1)
            },
            TokenRow {
                is_yours: true,
                scope: "a, b".into(),
                ..token(2)
            },
        ],
        ..tokens()
    };
    let page = html(&page);
    assert!(page.contains(">expired<") && page.contains(">a, b<"));
    assert!(page.contains("/tokens/1/revoke") && !page.contains("/tokens/2/revoke"));
}

#[test]
fn the_log_pages_by_key_and_keeps_its_filter() {
    let page = html(&audit());
    assert!(page.contains("&amp;before=5\"") && page.contains("id=\"newest\""));
    assert!(page.contains("action=session.login_failed&amp;"));
    assert!(page.contains("value=\"session.login_failed\" selected"));
    let empty = AuditPage {
        rows: Vec::new(),
        actor: String::new(),
        action: String::new(),
        before: None,
        next: None,
        ..audit()
    };
    let page = html(&empty);
    assert!(page.contains("No entries yet") && !page.contains("id=\"older\""));
}
