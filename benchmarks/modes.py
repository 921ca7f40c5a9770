"""Two modes on real questions: retrieval by the bi mode, before and after reranking by cross.

    python benchmarks/modes.py MODEL FOLDER [QUERIES]   the measurement
    python benchmarks/modes.py MODEL FOLDER rules       ways to combine the modes, on other pairs

The corpus is every distinct question of quora-dev, from TERCET_DATA, indexed into FOLDER if that is
missing. For each of QUERIES duplicate pairs, drawn with a seed, the first question is the query and
the second has to be found; the query itself is removed from the hits. The nearest 20 are reranked.
A query may have more duplicates than its partner: a second MRR takes the first of all questions
that the duplicate pairs of quora-dev connect with it, and `at best` is the first MRR of an order
that has all of them first and cannot tell them apart. Intervals are 95 % bootstrap intervals over
queries; the gain uses the same resampled queries. Times are for one query after the other,
including embedding.

How the modes are combined was chosen on a thousand development pairs; none of their questions is
measured.
"""

from __future__ import annotations

import csv
import random
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import numpy as np
from real_data import real_file
from records import record

from tercet.data.stream import TextFile
from tercet.model import Model, load
from tercet.search.index import Hit, Index
from tercet.search.lance_store import is_index
from tercet.search.rerank import TO_ORDER, Cross

QUERIES, RERANKED, TOP, RESAMPLES = 1_500, 20, 10, 1_000
TOGETHER, TIMED = 100, 100
DEVELOPMENT = 500

Pairs = list[tuple[str, str]]


def duplicates() -> tuple[list[str], Pairs]:
    """All questions, and the pairs that are duplicates."""
    path = real_file("quora-dev.csv")
    questions: dict[str, None] = {}
    pairs = []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            first, second = (
                " ".join((row[side] or "").split()) for side in ("sentence1", "sentence2")
            )
            questions |= dict.fromkeys(text for text in (first, second) if text)
            if row["is_duplicate"] == "1.0" and first and second and first != second:
                pairs.append((first, second))
    return list(questions), pairs


def split_pairs(pairs: Pairs) -> tuple[Pairs, Pairs]:
    """Development pairs to choose a rule on, and pairs without their questions, to measure it."""
    first = random.Random(0).sample(pairs, DEVELOPMENT)
    others = random.Random(7).sample(sorted(set(pairs) - set(first)), DEVELOPMENT)
    development = first + others
    seen = {question for pair in development for question in pair}
    return development, [pair for pair in pairs if seen.isdisjoint(pair)]


def reciprocal_rank(hits: list[Hit], query: str, partners: Collection[str], top: int) -> float:
    """Of the first partner among the hits, without the query itself."""
    others = [hit.text for hit in hits if hit.text != query][:top]
    return next((1.0 / place for place, text in enumerate(others, 1) if text in partners), 0.0)


def connected(pairs: Pairs) -> dict[str, frozenset[str]]:
    """All questions that duplicate pairs connect with each question, itself included."""
    graph: dict[str, list[str]] = {}
    for first, second in pairs:
        graph.setdefault(first, []).append(second)
        graph.setdefault(second, []).append(first)
    found: dict[str, frozenset[str]] = {}
    for question in graph:
        if question not in found:
            group, waiting = {question}, [question]
            while waiting:
                new = set(graph[waiting.pop()]) - group
                group |= new
                waiting += new
            found |= dict.fromkeys(group, frozenset(group))
    return found


def at_best(others: int) -> float:
    """The expected reciprocal rank of one of so many questions in random order."""
    return sum(1.0 / place for place in range(1, min(others, TOP) + 1)) / others


def interval(values: np.ndarray) -> str:
    draws = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.percentile(values[draws].mean(axis=1), (2.5, 97.5))
    return f"{values.mean():.4f} ({low:.4f} to {high:.4f})"


def open_index(folder: Path, questions: list[str], model: Model) -> Index:
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "questions"
    if not is_index(str(target)):
        corpus = folder / "questions.txt"
        corpus.write_text("\n".join(questions) + "\n", "utf-8")
        Index.build(target, TextFile.open(corpus), model)
    return Index.open(target, model)


def measure(index: Index, chosen: Pairs, groups: Mapping[str, frozenset[str]]) -> None:
    ranks: dict[str, list[float]] = {}
    any_ranks: dict[str, list[float]] = {}
    times: dict[str, list[float]] = {}
    for name, rerank in (("bi", 0), ("reranked", RERANKED + 1)):
        ranks[name], any_ranks[name], times[name] = [], [], []
        for hits, (query, partner) in hits_for(index, chosen, rerank):
            ranks[name].append(reciprocal_rank(hits, query, {partner}, TOP))
            any_ranks[name].append(reciprocal_rank(hits, query, groups[query] - {query}, TOP))
        for query, _ in chosen[:TIMED]:
            begin = time.perf_counter()
            index.search(query, top=TOP, rerank=rerank)
            times[name].append(1000 * (time.perf_counter() - begin))
    before, after = (np.array(ranks[name]) for name in ("bi", "reranked"))
    rows = [
        [f"recall@{TOP}, bi", interval((before > 0).astype(float))],
        [f"recall@{TOP}, reranked {RERANKED}", interval((after > 0).astype(float))],
        [f"MRR@{TOP}, bi", interval(before)],
        [f"MRR@{TOP}, reranked {RERANKED}", interval(after)],
        [f"gain in MRR@{TOP}", interval(after - before)],
        *(
            [f"MRR@{TOP} of any duplicate, {name}", interval(np.array(values))]
            for name, values in any_ranks.items()
        ),
        [f"MRR@{TOP} at best", f"{np.mean([at_best(len(groups[q]) - 1) for q, _ in chosen]):.4f}"],
    ]
    for name, milliseconds in times.items():
        p50, p99 = np.percentile(milliseconds, (50, 99))
        rows.append([f"ms per query, {name}: p50, p99", f"{p50:.1f}, {p99:.1f}"])
    record(
        "modes",
        columns=["", "mean (95 % interval)"],
        rows=rows,
        values={"questions": f"{index.count():,}", "pairs": f"{len(chosen):,}"},
        packages=("torch", "pylance", "numpy"),
        encoder=sys.argv[1],
    )


def hits_for(
    index: Index, chosen: Pairs, rerank: int
) -> Iterator[tuple[list[Hit], tuple[str, str]]]:
    for start in range(0, len(chosen), TOGETHER):
        block = chosen[start : start + TOGETHER]
        hits = index.search([query for query, _ in block], top=RERANKED + 1, rerank=rerank)
        yield from zip(hits, block, strict=True)


def compare_rules(index: Index, model: Model, chosen: Pairs) -> None:
    """The gain of rules without constants: the score of one mode, or the sum of both."""
    gains: dict[str, list[float]] = {}
    for hits, (query, partner) in hits_for(index, chosen, 0):
        before = reciprocal_rank(hits, query, {partner}, TOP)
        cosines = np.array([hit.score for hit in hits])
        for task in (name for name in TO_ORDER if name in model.tasks):
            cross = Cross(model, [task]).scores([(query, hit.text) for hit in hits])
            for rule, scores in ((task, cross), (f"bi + {task}", cosines + cross)):
                ordered = [hits[place] for place in np.argsort(-scores, kind="stable")]
                after = reciprocal_rank(ordered, query, {partner}, TOP)
                gains.setdefault(rule, []).append(after - before)
    print("| sorted by | gain in MRR@10 (95 % interval) |")
    print("|---|---|")
    for rule, values in gains.items():
        print(f"| {rule} | {interval(np.array(values))} |")


def main() -> None:
    model = load(sys.argv[1], device="cpu")
    questions, pairs = duplicates()
    index = open_index(Path(sys.argv[2]), questions, model)
    development, measured = split_pairs(pairs)
    what = sys.argv[3] if len(sys.argv) > 3 else str(QUERIES)
    if what == "rules":
        print(f"{len(questions):,} questions, {len(development):,} development pairs")
        compare_rules(index, model, development)
        return
    chosen = random.Random(1).sample(measured, min(int(what), len(measured)))
    print(f"{len(questions):,} questions, {len(chosen):,} of {len(measured):,} duplicate pairs")
    measure(index, chosen, connected(pairs))


if __name__ == "__main__":
    main()
