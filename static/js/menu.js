// Menus (`<details class="menu">`): closed by Escape, by a click elsewhere and when the focus leaves them.

function close(menu, returnFocus) {
  menu.open = false;
  if (returnFocus) menu.querySelector("summary").focus();
}

export function setUpMenus() {
  const open = () => document.querySelectorAll("details.menu[open]");
  document.addEventListener("click", (event) => {
    for (const menu of open()) if (!menu.contains(event.target)) close(menu, false);
  });
  document.addEventListener("focusin", (event) => {
    for (const menu of open()) if (!menu.contains(event.target)) close(menu, false);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of open()) close(menu, menu.contains(document.activeElement));
  });
}
