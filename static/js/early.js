// Sets the theme before the first paint on pages without a session, where the server did not. Everything else about
// themes is in theme.js.

const choice = /(?:^|; )hearth_theme=(light|dark)(?:;|$)/.exec(document.cookie)?.[1];
if (choice) document.documentElement.dataset.theme = choice;
