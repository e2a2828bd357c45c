"""Memory and processor time of `rag-eval import otlp`, for the same spans in every container.

    python bench/otlp_memory.py [--mb 100]

Spans have OpenInference attributes: eight documents a retrieval in `one`, `single`, `lines` and `pretty`,
next to nothing in `short`, and text that needs two bytes a character in `wide`. Linux only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

TEXT = "The warranty covers defects of material and workmanship for twenty-four months after delivery. " * 8
SHAPES = ("one", "single", "lines", "pretty", "short", "wide")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=100)
    megabytes = parser.parse_args().mb
    print(f"{megabytes} MB of OTLP/JSON\n\n| container | traces | memory, MB | processor, s |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for shape in SHAPES:
            path = Path(folder) / "spans.json"
            traces = write(path, shape, megabytes * 1_000_000)
            memory, seconds = measured(path)
            print(f"| {shape} | {traces:,} | {memory:.0f} | {seconds:.1f} |")


def measured(path: Path) -> tuple[float, float]:
    """Return the peak memory in MB and the processor time of an import in a process of its own."""
    command = ["import", "otlp", str(path), "--out", str(path.with_suffix(".jsonl")), "--force", "--quiet"]
    # ru_maxrss would count the process that starts this one.
    code = f"""
import pathlib, re, time
from rag_eval.cli import main
assert main({command!r}) == 0
print(re.search("VmHWM:\\s*([0-9]+)", pathlib.Path("/proc/self/status").read_text())[1], time.process_time())
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    kilobytes, seconds = done.stdout.split()
    return int(kilobytes) / 1000, float(seconds)


def write(path: Path, shape: str, size: int) -> int:
    """Write OTLP of at least ``size`` bytes, and return its number of traces."""
    resource = {"attributes": [pair("service.name", "shop")]}
    begin = {"lines": "", "single": '{"resourceSpans":[{"scopeSpans":[{"spans":['}.get(shape, '{"resourceSpans":[')
    end = {"lines": "", "single": "]}]}]}"}.get(shape, "]}")
    written = traces = 0
    with path.open("w", encoding="utf-8") as file:
        file.write(begin)
        while written < size:
            spans = list(short(traces) if shape == "short" else answered(traces, wide=shape == "wide"))
            batch = {"resource": resource, "scopeSpans": [{"spans": spans}]}
            if shape == "single":
                text = json.dumps(spans)[1:-1]
            elif shape == "lines":
                text = json.dumps({"resourceSpans": [batch]}) + "\n"
            else:
                text = json.dumps(batch, ensure_ascii=False, indent=2 if shape == "pretty" else None)
            file.write("," + text if traces and shape != "lines" else text)
            written += len(text.encode())
            traces += 1
        file.write(end)
    return traces


def answered(number: int, *, wide: bool) -> Iterator[dict[str, object]]:
    """Yield a question with a retrieval of eight documents and an answer."""
    asked = {"openinference.span.kind": "CHAIN", "input.value": f"Question {number}?", "output.value": "24 months. [1]"}
    yield span(number, 1, 0, asked)
    documents = {"openinference.span.kind": "RETRIEVER"}
    for place in range(8):
        prefix = f"retrieval.documents.{place}.document"
        documents[f"{prefix}.id"] = f"d{number % 997}-{place}"
        documents[f"{prefix}.content"] = f"{number} {place} {'’' if wide else ''}{TEXT}"
    yield span(number, 2, 1, documents)
    yield span(number, 3, 1, {"openinference.span.kind": "LLM", "output.value": "24 months. [1]"})


def short(number: int) -> Iterator[dict[str, object]]:
    """Yield a question with twelve steps that hold next to nothing."""
    yield next(answered(number, wide=False))
    yield span(
        number, 2, 1, {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.id": f"d{number}"}
    )
    for step in range(3, 13):
        yield span(number, step, 1, {"http.method": "GET", "http.url": f"http://store/{number}/{step}"})


def span(trace: int, number: int, parent: int, attributes: dict[str, str]) -> dict[str, object]:
    start = 1795404763000000000 + trace * 10**9
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{trace:012x}{number:04x}",
        **({"parentSpanId": f"{trace:012x}{parent:04x}"} if parent else {}),
        "name": f"step {number}",
        "startTimeUnixNano": str(start + number),
        "endTimeUnixNano": str(start + 10**8),
        "attributes": [pair(*one) for one in attributes.items()],
        "status": {},
    }


def pair(name: str, value: str) -> dict[str, object]:
    return {"key": name, "value": {"stringValue": value}}


if __name__ == "__main__":
    main()
