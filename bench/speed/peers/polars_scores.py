"""Compute the output of --format scores by a lazy query of polars: python polars_scores.py GOLD TRACE."""

import json
import sys

import polars as pl

TEXTS = pl.List(pl.String)
GOLD = {"qid": pl.String, "answerable": pl.Boolean, "gold_claim_substr": TEXTS, "gold_citations": TEXTS}
ANSWER = pl.Struct({"claim": pl.String, "citations": TEXTS})
TRACE = {"qid": pl.String, "retrieved_ids": TEXTS, "answer_json": ANSWER}


def cases(gold, trace):
    """Return a row for each question: its labels, and the ids, citations and claim of its last trace."""
    answer = pl.col("answer_json").struct
    traces = pl.scan_ndjson(trace, schema=TRACE).select(
        "qid",
        found=pl.col("retrieved_ids"),
        cited=answer.field("citations"),
        claim=answer.field("claim").str.strip_chars().str.to_lowercase(),
    )
    last = traces.unique(subset="qid", keep="last", maintain_order=True)
    whole = pl.scan_ndjson(gold, schema=GOLD).join(last, on="qid", how="left")
    nothing = pl.lit([], dtype=TEXTS)
    return whole.with_columns(
        pl.col("found").fill_null(nothing), pl.col("cited").fill_null(nothing), pl.col("claim").fill_null("")
    )


def says(rows):
    """Return the qids of the rows whose claim contains one of their texts."""
    texts = rows.select("qid", "claim", text=pl.col("gold_claim_substr")).explode("text").drop_nulls("text")
    low = pl.col("text").str.to_lowercase()
    told = texts.filter((pl.col("text").str.len_chars() >= 5) & pl.col("claim").str.contains(low, literal=True))
    return told.select("qid").unique().with_columns(told=True)


def judged(rows):
    wanted, cited, found = pl.col("gold_citations"), pl.col("cited"), pl.col("found")
    overlaps = pl.when(wanted.list.len() > 0).then(wanted.list.set_intersection(cited).list.len() > 0)
    within = cited.list.set_difference(found).list.len() == 0
    return rows.join(says(rows), on="qid", how="left").select(
        "answerable",
        shipped=pl.col("claim") != "not in context",
        hit=within & overlaps.otherwise(cited.list.len() == 0),
        says=(pl.col("gold_claim_substr").list.len() == 0) | pl.col("told").fill_null(value=False),
        recalled=wanted.list.set_difference(found.list.head(5)).list.len() == 0,
    )


def main():
    answerable, shipped, hit = pl.col("answerable"), pl.col("shipped"), pl.col("hit")
    counts = judged(cases(*sys.argv[1:])).select(
        answered=shipped.sum(),
        refused=(~shipped).sum(),
        answerable=answerable.sum(),
        unanswerable=(~answerable).sum(),
        right=(shipped & answerable & hit & pl.col("says")).sum(),
        hit=(shipped & answerable & hit).sum(),
        under=(shipped & ~answerable).sum(),
        over=(~shipped & answerable).sum(),
        recalled=(answerable & pl.col("recalled")).sum(),
    )
    n = counts.collect().row(0, named=True)
    scores = {name: n[name] for name in ("answered", "refused", "answerable", "unanswerable")}
    scores |= {"precision": round(n["right"] / n["answered"], 4), "chr": round(n["hit"] / n["answered"], 4)}
    scores["under_refusal"] = round(n["under"] / n["unanswerable"], 4)
    scores["over_refusal"] = round(n["over"] / n["answerable"], 4)
    print(json.dumps(scores | {"recall@k": round(n["recalled"] / n["answerable"], 4)}))


if __name__ == "__main__":
    main()
