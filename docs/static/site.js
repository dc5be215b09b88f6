// What scrolls must be reachable by keyboard.
addEventListener("load", () => {
  for (const box of document.querySelectorAll("pre, .table-wrapper"))
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
});
