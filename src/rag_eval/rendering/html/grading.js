"use strict";
// Collects the grades of a person and offers them as a file. Nothing is sent anywhere.
(() => {
  const form = document.getElementById("grades");
  const rater = document.getElementById("rater");
  const state = document.getElementById("state");
  const save = document.getElementById("save");
  const answers = [...form.querySelectorAll("[data-label]")];
  const times = new Map();
  let unsaved = false;

  const graded = (answer) => [...answer.querySelectorAll("input[type=radio]:checked")];
  const show = () => {
    const done = answers.filter((answer) => graded(answer).length).length;
    state.textContent = `${done} of ${answers.length} answers graded${unsaved ? ", not saved" : ""}`;
    save.disabled = !done || !rater.value.trim();
  };

  form.addEventListener("input", (event) => {
    const answer = event.target.closest("[data-label]");
    if (answer) times.set(answer, new Date().toISOString().replace(/\.\d+Z$/, "Z"));
    unsaved = true;
    show();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("beforeunload", (event) => {
    if (unsaved) event.preventDefault();
  });
  save.addEventListener("click", () => {
    const rows = answers.filter((answer) => graded(answer).length).map((answer) => {
      const row = { ...JSON.parse(answer.dataset.label), rater: rater.value.trim(), at: times.get(answer) };
      for (const input of graded(answer)) row[input.dataset.choice] = Number(input.value);
      const note = answer.querySelector("input[type=text]").value.trim();
      if (note) row.note = note;
      return JSON.stringify(row);
    });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`${rows.join("\n")}\n`], { type: "application/jsonl" }));
    link.download = "judge-labels.jsonl";
    link.click();
    URL.revokeObjectURL(link.href);
    unsaved = false;
    show();
  });
  show();
})();
