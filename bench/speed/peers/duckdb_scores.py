"""Compute the output of --format scores by one SQL query of duckdb: python duckdb_scores.py GOLD TRACE."""

import json
import sys

import duckdb

QUERY = """
WITH gold AS (
  SELECT qid, answerable, gold_claim_substr AS texts, gold_citations AS wanted
  FROM read_json($gold, format = 'newline_delimited', columns = {
    qid: 'VARCHAR', answerable: 'BOOLEAN', gold_claim_substr: 'VARCHAR[]', gold_citations: 'VARCHAR[]'})
), numbered AS (
  SELECT row_number() OVER () AS line, qid, retrieved_ids AS found, answer_json AS answer
  FROM read_json($trace, format = 'newline_delimited', columns = {
    qid: 'VARCHAR', retrieved_ids: 'VARCHAR[]', answer_json: 'STRUCT(claim VARCHAR, citations VARCHAR[])'})
), last AS (
  SELECT qid, arg_max({found: found, answer: answer}, line) AS row FROM numbered GROUP BY qid
), cases AS (
  SELECT answerable, texts, wanted, coalesce(row.found, []) AS found, coalesce(row.answer.citations, []) AS cited,
    lower(trim(coalesce(row.answer.claim, ''))) AS claim
  FROM gold LEFT JOIN last USING (qid)
), judged AS (
  SELECT answerable, claim <> 'not in context' AS shipped, list_has_all(found[1:5], wanted) AS recalled,
    list_has_all(found, cited) AND CASE WHEN len(wanted) > 0 THEN list_has_any(cited, wanted) ELSE len(cited) = 0 END
      AS hit,
    len(texts) = 0 OR len(list_filter(texts, lambda one: length(one) >= 5 AND contains(claim, lower(one)))) > 0 AS says
  FROM cases
)
SELECT count(*) FILTER (shipped), count(*) FILTER (NOT shipped), count(*) FILTER (answerable),
  count(*) FILTER (NOT answerable), count(*) FILTER (shipped AND answerable AND hit AND says),
  count(*) FILTER (shipped AND answerable AND hit), count(*) FILTER (shipped AND NOT answerable),
  count(*) FILTER (NOT shipped AND answerable), count(*) FILTER (answerable AND recalled)
FROM judged
"""


def main():
    gold, trace = sys.argv[1:]
    found = duckdb.execute(QUERY, {"gold": gold, "trace": trace}).fetchone()
    shipped, refused, answerable, unanswerable, right, hit, under, over, recalled = found
    scores = {"answered": shipped, "refused": refused, "answerable": answerable, "unanswerable": unanswerable}
    scores |= {"precision": round(right / shipped, 4), "chr": round(hit / shipped, 4)}
    scores |= {"under_refusal": round(under / unanswerable, 4), "over_refusal": round(over / answerable, 4)}
    print(json.dumps(scores | {"recall@k": round(recalled / answerable, 4)}))


if __name__ == "__main__":
    main()
