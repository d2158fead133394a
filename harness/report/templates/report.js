"use strict";
(() => {
  const form = document.getElementById("filter");
  if (!form) return;
  const cells = Array.from(document.querySelectorAll("details.cell"));
  const said = document.getElementById("shown");
  const texts = new Map();
  const textOf = (cell) => {
    if (!texts.has(cell)) texts.set(cell, cell.textContent.toLowerCase());
    return texts.get(cell);
  };
  const apply = () => {
    const names = ["domain", "condition", "state"];
    const wanted = form.elements["search"].value.toLowerCase();
    let count = 0;
    for (const cell of cells) {
      const fits = names.every((name) => {
        const value = form.elements[name] ? form.elements[name].value : "";
        return !value || cell.dataset[name] === value;
      });
      cell.hidden = !(fits && (!wanted || textOf(cell).includes(wanted)));
      if (!cell.hidden) count += 1;
    }
    said.textContent = count + " of " + cells.length + " cells shown";
  };
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    const cell = target && target.closest("details.cell");
    if (!cell) return;
    if (cell.hidden) {
      form.reset();
      apply();
    }
    cell.open = true;
    cell.scrollIntoView();
  };
  let timer = 0;
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(apply, 120);
  });
  form.addEventListener("reset", () => setTimeout(apply, 0));
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", reveal);
  form.hidden = false;
  apply();
  reveal();
})();
