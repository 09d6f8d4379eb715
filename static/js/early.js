// Colours a page before it is shown where the server did not: those without a session. Everything else about the theme is
// in theme.js.

const choice = /(?:^|; )hearth_theme=(light|dark)(?:;|$)/.exec(document.cookie)?.[1];
if (choice) document.documentElement.dataset.theme = choice;
