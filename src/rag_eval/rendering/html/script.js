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
  // The row below a question is what it unfolds; the two go together.
  const every = [...table.tBodies].flatMap((body) => [...body.rows]);
  const rows = every.filter((row) => row.className !== "details");
  const below = new Map();
  for (const [place, row] of every.entries()) if (row.className === "details") below.set(every[place - 1], row);
  const body = table.tBodies[0];
  for (const other of [...table.tBodies].slice(1)) other.remove();

  // A word that is asked for does not reach from one cell into the next.
  const searched = (row) => Array.from(row.cells, (cell) => cell.textContent).join("\n").toLowerCase();
  let words = null;
  const text = (row, column) => row.cells[column].textContent;
  const numbers = new Intl.NumberFormat("en");
  const compare = new Intl.Collator("en", { numeric: true }).compare;

  let order = rows.map((_, place) => place);
  let whole = false;

  // What a choice is about: the text of a column, or whether the case passes.
  const outcome = headers.findIndex((header) => header.dataset.choice === "label");
  const saying = (key) => {
    if (key === "outcome") return (row) => (row.cells[outcome].classList.contains("good") ? "passes" : "fails");
    const column = headers.findIndex((header) => header.dataset.choice === key);
    return (row) => text(row, column);
  };
  const choices = [...form.querySelectorAll("select")].map((select) => {
    const said = rows.map(saying(select.dataset.choice));
    const counts = new Map();
    for (const each of said) counts.set(each, (counts.get(each) || 0) + 1);
    for (const each of [...counts.keys()].sort(compare)) {
      const name = each === "" ? "(none)" : each;
      // A value is told from "all", which is empty.
      select.append(new Option(`${name} (${numbers.format(counts.get(each))})`, `=${each}`));
    }
    return { select, said };
  });

  // A table measures every cell before it shows one. With very many rows each is laid out by itself, and when it comes into
  // sight, in columns as wide as they were; roles say that it is a table all the same.
  let told = false;
  const lay = (many) => {
    if (many && !table.classList.contains("many")) {
      const widths = headers.map((header) => `${header.getBoundingClientRect().width}px`);
      table.style.setProperty("--columns", widths.join(" "));
    }
    table.classList.toggle("many", many);
    if (!many || told) return;
    told = true;
    table.setAttribute("role", "table");
    for (const part of [table.tHead, body]) part.setAttribute("role", "rowgroup");
    for (const row of [table.tHead.rows[0], ...every]) row.setAttribute("role", "row");
    for (const header of headers) header.setAttribute("role", "columnheader");
    for (const row of every)
      for (const cell of row.cells) cell.setAttribute("role", cell.tagName === "TH" ? "rowheader" : "cell");
  };

  const show = () => {
    if (search.value) words ??= rows.map(searched);
    const asked = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = choices.filter(({ select }) => select.value !== "");
    const fits = (place) =>
      asked.every((word) => words[place].includes(word)) &&
      chosen.every(({ select, said }) => `=${said[place]}` === select.value);
    const found = order.filter(fits);
    const shown = whole ? found : found.slice(0, FIRST);
    lay(shown.length > MANY);
    const unfolded = (place) => (below.has(rows[place]) ? [rows[place], below.get(rows[place])] : [rows[place]]);
    body.replaceChildren(...shown.flatMap(unfolded));
    const all = numbers.format(rows.length);
    const fit = found.length === rows.length ? `${all} cases` : `${numbers.format(found.length)} of ${all} cases match`;
    const cut = shown.length < found.length ? `; the first ${numbers.format(shown.length)} are shown` : "";
    count.textContent = `${fit}${cut}.`;
    more.hidden = !cut;
    more.firstElementChild.textContent = `Show all ${numbers.format(found.length)} rows`;
  };

  const sorted = (column, down) => {
    const values = rows.map((row) => text(row, column));
    // A cell that says nothing comes last, whichever way.
    const by = (one, other) =>
      (values[one] === "") - (values[other] === "") ||
      (down ? -1 : 1) * compare(values[one], values[other]) ||
      one - other;
    order = rows.map((_, place) => place).sort(by);
    for (const [place, header] of headers.entries())
      header.setAttribute("aria-sort", place !== column ? "none" : down ? "descending" : "ascending");
    show();
  };

  for (const [column, header] of headers.entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = header.textContent;
    button.addEventListener("click", () => sorted(column, header.getAttribute("aria-sort") === "ascending"));
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
    whole = false;
    show();
    search.focus();
  });
  document.getElementById("all").addEventListener("click", () => {
    const last = body.rows[body.rows.length - 1];
    whole = true;
    show();
    const next = last && last.nextElementSibling;
    if (next) {
      next.tabIndex = -1;
      next.focus();
    }
  });

  // On paper everything is open; what was closed is closed again.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
  });

  form.hidden = false;
  show();
})();
