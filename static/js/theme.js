// Theme switch: light, dark or system. Kept in a cookie, so that the server can render the page with it.

const COOKIE = "hearth_theme";
const YEAR_S = 365 * 24 * 3600;

/** Colours the page and remembers it. `theme` is `system`, `light` or `dark`. */
export function setTheme(theme) {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is not there over plain http.
  document.cookie = `${COOKIE}=${theme}; Path=/; SameSite=Strict; Max-Age=${YEAR_S}${secure}`;
  document.documentElement.dataset.theme = theme;
  for (const button of document.querySelectorAll("[data-theme-switch] button")) {
    button.setAttribute("aria-pressed", String(button.value === theme));
  }
  document.dispatchEvent(new CustomEvent("theme"));
}

export function setUpTheme() {
  document.addEventListener("submit", (event) => {
    const theme = event.target.matches("[data-theme-switch]") && event.submitter?.value;
    if (!theme) return;
    event.preventDefault();
    setTheme(theme);
  });
}
