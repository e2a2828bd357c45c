"use strict";
// Searches, filters and sorts the table of cases. Without this script the table is whole, and only longer.
(() => {
  const FIRST = 100;
  const MANY = 500;
  const table = document.getElementById("cases");
  const form = document.getElementById("filters");
  const count = document.getElementById("count");
  const more = document.getElementById("more");
  const search = document.getElementById("search");
  if (!table || !form || !count || !more || !search) return;

  const headers = [...table.tHead.rows[0].cells];
  // The row below a question is what it unfolds; the two stay together.
  const allRows = [...table.tBodies].flatMap((body) => [...body.rows]);
  const rows = allRows.filter((row) => row.className !== "details");
  const below = new Map();
  for (const [index, row] of allRows.entries()) if (row.className === "details") below.set(allRows[index - 1], row);
  const body = table.tBodies[0];
  for (const other of [...table.tBodies].slice(1)) other.remove();

  // A line break between cells: no search word matches across them.
  const searchText = (row) => Array.from(row.cells, (cell) => cell.textContent).join("\n").toLowerCase();
  let searchTexts = null;
  const text = (row, column) => row.cells[column].textContent;
  const numbers = new Intl.NumberFormat("en");
  const compare = new Intl.Collator("en", { numeric: true }).compare;

  let order = rows.map((_, index) => index);
  let showAll = false;

  // Filters: by the text of a column, or by whether the case passes.
  const outcome = headers.findIndex((header) => header.dataset.choice === "label");
  const valueOf = (key) => {
    if (key === "outcome") return (row) => (row.cells[outcome].classList.contains("good") ? "passes" : "fails");
    const column = headers.findIndex((header) => header.dataset.choice === key);
    return (row) => text(row, column);
  };
  const filters = [...form.querySelectorAll("select")].map((select) => {
    const values = rows.map(valueOf(select.dataset.choice));
    const counts = new Map();
    for (const value of values) counts.set(value, (counts.get(value) || 0) + 1);
    for (const value of [...counts.keys()].sort(compare)) {
      const name = value === "" ? "(none)" : value;
      // The "=" distinguishes an empty value from "all".
      select.append(new Option(`${name} (${numbers.format(counts.get(value))})`, `=${value}`));
    }
    return { select, values };
  });

  // A browser measures every cell of a table before it shows one. With very many rows, each row becomes a grid of its
  // own with the widths of the table's columns, laid out when it is scrolled into view; roles keep it a table.
  let hasRoles = false;
  const layOut = (many) => {
    if (many && !table.classList.contains("many")) {
      const widths = headers.map((header) => `${header.getBoundingClientRect().width}px`);
      table.style.setProperty("--columns", widths.join(" "));
    }
    table.classList.toggle("many", many);
    if (!many || hasRoles) return;
    hasRoles = true;
    table.setAttribute("role", "table");
    for (const part of [table.tHead, body]) part.setAttribute("role", "rowgroup");
    for (const row of [table.tHead.rows[0], ...allRows]) row.setAttribute("role", "row");
    for (const header of headers) header.setAttribute("role", "columnheader");
    for (const row of allRows)
      for (const cell of row.cells) cell.setAttribute("role", cell.tagName === "TH" ? "rowheader" : "cell");
  };

  const show = () => {
    if (search.value) searchTexts ??= rows.map(searchText);
    const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const active = filters.filter(({ select }) => select.value !== "");
    const matches = order.filter((index) =>
      words.every((word) => searchTexts[index].includes(word)) &&
      active.every(({ select, values }) => `=${values[index]}` === select.value));
    const shown = showAll ? matches : matches.slice(0, FIRST);
    layOut(shown.length > MANY);
    body.replaceChildren(...shown.flatMap((index) => [rows[index], below.get(rows[index])].filter(Boolean)));
    const all = numbers.format(rows.length);
    const some = `${numbers.format(matches.length)} of ${all} cases match`;
    const cut = shown.length < matches.length ? `; the first ${numbers.format(shown.length)} are shown` : "";
    count.textContent = `${matches.length === rows.length ? `${all} cases` : some}${cut}.`;
    more.hidden = !cut;
    more.firstElementChild.textContent = `Show all ${numbers.format(matches.length)} rows`;
  };

  const sortBy = (column, descending) => {
    const values = rows.map((row) => text(row, column));
    // Empty cells come last in both directions.
    const by = (one, other) =>
      (values[one] === "") - (values[other] === "") ||
      (descending ? -1 : 1) * compare(values[one], values[other]) ||
      one - other;
    order = rows.map((_, index) => index).sort(by);
    for (const [index, header] of headers.entries())
      header.setAttribute("aria-sort", index !== column ? "none" : descending ? "descending" : "ascending");
    show();
  };

  for (const [column, header] of headers.entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = header.textContent;
    button.addEventListener("click", () => sortBy(column, header.getAttribute("aria-sort") === "ascending"));
    header.replaceChildren(button);
    header.setAttribute("aria-sort", "none");
  }

  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(show, 60);
  });
  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("clear").addEventListener("click", () => {
    form.reset();
    showAll = false;
    show();
    search.focus();
  });
  document.getElementById("all").addEventListener("click", () => {
    const last = body.rows[body.rows.length - 1];
    showAll = true;
    show();
    const next = last && last.nextElementSibling;
    if (next) {
      next.tabIndex = -1;
      next.focus();
    }
  });

  // On paper everything is open; afterwards it is closed again.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const element of opened) element.open = true;
  });
  addEventListener("afterprint", () => {
    for (const element of opened) element.open = false;
  });

  form.hidden = false;
  show();
})();
