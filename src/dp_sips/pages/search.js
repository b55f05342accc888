"use strict";
(() => {
  const box = document.getElementById("search");
  if (!box) return;
  const found = document.getElementById("found");
  const rows = [...document.querySelectorAll("#item-table tbody tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  box.parentElement.hidden = false;
  box.addEventListener("input", () => {
    const wanted = box.value.toLowerCase();
    let shown = 0;
    rows.forEach((row, n) => {
      row.hidden = !texts[n].includes(wanted);
      shown += row.hidden ? 0 : 1;
    });
    found.textContent = wanted ? `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
  });
})();
