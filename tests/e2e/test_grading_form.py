"""The form of a spot-check in a real browser: what a person clicks is what judge calibrate reads."""

from __future__ import annotations

import json

import pytest

from cases import write_rows
from e2e.chromium import chromium
from seams import main
from verdicts import gold_of, trace_of, verdict_rows

pytestmark = pytest.mark.e2e

CLICKS = """(async () => {
  let saved = null;
  const make = URL.createObjectURL;
  URL.createObjectURL = (blob) => { saved = blob; return make.call(URL, blob); };
  const button = document.getElementById("save"), before = button.disabled;
  for (const [place, section] of [...document.querySelectorAll("section")].entries())
    if (place !== 1) section.querySelector(`input[data-choice=groundedness][value="${place}"]`).click();
  document.querySelector("section input[type=text]").value = 'so "it" is';
  const nameless = button.disabled;
  document.getElementById("rater").value = "ann";
  document.getElementById("rater").dispatchEvent(new Event("input", { bubbles: true }));
  const state = document.getElementById("state").textContent;
  button.click();
  return JSON.stringify({ before, nameless, state, text: await saved.text() });
})()"""


def test_grades_are_saved_as_labels(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    golds, traces = gold_of(4), trace_of(4)
    traces[2]["answer_json"]["claim"] = "</section><script>document.title = 'taken'</script>"
    write_rows(tmp_path / "eval/gold.jsonl", golds)
    write_rows(tmp_path / "eval/verdicts.jsonl", verdict_rows(golds, traces))
    assert main(["judge", "spot-check", "--html", "form.html"]) == 0
    with chromium(tmp_path) as browser:
        browser.open(tmp_path / "form.html")
        content = json.loads(browser.run(CLICKS))
        assert browser.run("document.title") == "Spot-check of a judge"
        assert browser.complaints() == []
        assert {item for item in browser.requested() if not item.startswith("blob:")} == {
            (tmp_path / "form.html").as_uri()
        }
    assert (content["before"], content["nameless"]) == (True, True)
    assert content["state"] == "3 of 4 answers graded, not saved"
    rows = [json.loads(line) for line in content["text"].splitlines()]
    assert [(row["groundedness"], row["rater"], row.get("note")) for row in rows] == [
        (0, "ann", 'so "it" is'),
        (2, "ann", None),
        (3, "ann", None),
    ]
    (tmp_path / "labels.jsonl").write_text(content["text"], "utf-8")
    capsys.readouterr()
    assert main(["judge", "calibrate", "--labels", "labels.jsonl", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["scores"]["groundedness"]["n"] == 3
