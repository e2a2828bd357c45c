"""Times our leak detectors, and beside them the library that their tests take for an oracle, in processor time.

    python bench/leaks.py

Needs detect-secrets (it comes with the test group).
"""

import sys
import time

TEXT = "The retention period is 30 days, see section 4.2 of the manual. " * 12
CHUNKS = [[f"{word}{place}" for place in range(120)] for word in ("one", "two", "three", "four", "five")]
HOSTILE = "eyJ" * 33_333


def spent(work):
    begun = time.process_time()
    work()
    return 1000 * (time.process_time() - begun)


def best(work, times=100):
    return min(spent(lambda: [work() for _ in range(times)]) for _ in range(7)) / times


def library():
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    return [kind() for kind in get_mapping_from_secret_type_to_class().values()]


def main():
    print(f"ours, import                   {spent(lambda: __import__('rag_eval.textual.leaks')):9.1f} ms")
    print(f"library, import and make       {spent(library):9.1f} ms", end=", brings ")
    print(*(name for name in ("requests", "ssl", "multiprocessing") if name in sys.modules))
    from rag_eval.contract import Safety
    from rag_eval.textual.detectors import DETECTORS
    from rag_eval.textual.leaks import leaks_of

    secrets, plugins = [one.spans for one in DETECTORS if one.category == "secrets"], library()
    rows = {
        f"ours, secrets, {len(TEXT)} characters": (lambda: [list(one(TEXT)) for one in secrets], 100),
        f"library, {len(plugins)} plug-ins": (lambda: [list(one.analyze_string(TEXT)) for one in plugins], 20),
        "ours, all": (lambda: leaks_of(TEXT, ["How long?"], [], Safety()), 100),
        "ours, all, with five chunks": (lambda: leaks_of(TEXT, ["How long?"], CHUNKS, Safety()), 100),
    }
    for name, (work, times) in rows.items():
        print(f"{name:30} {best(work, times):9.3f} ms an answer")
    print(f"ours, {len(HOSTILE)} hostile characters {spent(lambda: [list(one(HOSTILE)) for one in secrets]):7.0f} ms")
    hostile = spent(lambda: [list(one.analyze_string(HOSTILE)) for one in plugins])
    print(f"library, the same              {hostile:9.0f} ms")


if __name__ == "__main__":
    main()
