"""Tests that pages with results state measured figures only in generated blocks, where a command writes them.

A figure is a number with a unit of measurement. Sizes (KiB, MiB) are not searched for, because nearly all of them are
settings. A page may also state a number that is not a result, such as a setting or a goal: ALLOWED lists these phrases."""

import re
from pathlib import Path

import pytest
from test_pages import ROOT, pages

BLOCK = re.compile(r"^<!-- (\w+):begin -->$.*?^<!-- \1:end -->$", re.DOTALL | re.MULTILINE)

# These pages have a generated block, but describe commands, rules and their levels, and no machine.
NO_RESULTS = {"analysis/reference.md", "experiments/reference.md"}
# Pages without a block that could state results.
ALSO = {"experiments/kernels/README.md", "experiments/storage/README.md", "variants/README.md"}

NUMBER = r"(?<![\w.,^])\d[\d.,]*"
UNIT = r"[nµm]?s|[kMGT]?B/s|(?:[kMG]\s+)?msg/s|[kMGT]?(?:FLOP|OP)/s|IOPS|%|times|×(?!\s*\d)|[kMGT]|million|billion|[WJ]|[MG]Hz"
FIGURE = re.compile(rf"{NUMBER}\s+(?:{UNIT})(?![\w/])|\bfactor\s+of\s+(?:up\s+to\s+)?{NUMBER}|[±×−]\s?{NUMBER}\s+%")

# Phrases with numbers that are not results, by page, and what they are. Each phrase must be on its page.
ALLOWED = {
    "common/redis/guarantees.md": {
        "chunk of data by 20 ms": "setting of the proxy",
        "was 60 % of": "goal",
        "0.2 ms": "setting of the delayed link, both directions",
        "delay of 0.1 ms": "setting of the delayed link",
        "more than 5 % better than a limit": "threshold of a flag",
    },
    "experiments/kernels/README.md": {
        "20 ms of pause": "setting",
        "takes about 0.5 ms or more": "setting: the least length of a sample",
        "every 10 ms": "setting of the sampling thread",
    },
    "experiments/kernels/results.md": {
        "an H200 (700 W)": "data sheet",
        "a launch, 2 to 5 %": "prediction",
        "85 % of the memory's rate with 128 rows": "prediction",
        "| 1 % less time |": "prediction",
        "1 to 2 % less time at 4096³": "prediction",
        "the predicted 60 %": "prediction",
    },
    "experiments/overlap/README.md": {
        "more than 20 s gives up": "setting: a timeout",
        "a kernel of 60 µs": "setting: --cost-us",
    },
    "libraries/tensors/README.md": {
        "polls every 0.2 ms": "setting",
        "expires 10 s after": "setting",
        "16 cores at 2.1 GHz": "data sheet",
    },
    "python/README.md": {
        "within 100 ms": "setting: the interval between two checks for signals",
        "(10 ms) after the last message": "default of park_after",
        "(1 s) for about": "default of a setting",
        "again after 0.05 s": "setting",
        "up to 2 s": "setting",
        "goals were 40 M messages/s in blocks and 150 k asyncio tasks": "goals",
    },
    "results/reference/h100/README.md": {
        "a factor of 1.5": "threshold of the ranks command",
        "The goal was 92 %": "goal",
        "one repetition of 0.1 s": "setting",
        "at most 2 % of the verdicts": "rule set before the run",
    },
    "results/reference/h200/README.md": {
        "0.2 ms between workers and Redis": "setting of the delayed link",
        "a factor of 1.5": "threshold of the ranks command",
        "were within 10 % of the driver's limit": "threshold of the status generator-bound",
        "a p99 of at most 1 ms": "setting: the bound of the search",
    },
    "variants/README.md": {"within 10 % of this limit": "threshold of the status generator-bound"},
    "variants/feeding/transfers/README.md": {
        "sweep took 390 s": "duration of a command",
        "1.5 s of search": "setting",
        "up to 100 µs for a full batch": "setting: the batch timeout",
        "at up to 10 M messages per second": "setting: the offered rate",
        "At 40 M messages per second": "setting: the offered rate",
    },
}
EVERYWHERE = ("95 % interval",)


def figures(page: str, allowed: list[str]) -> list[str]:
    """The measured figures in the text outside generated blocks, fences and inline code."""
    text = re.sub(r"^( *)```.*?^ *```$", "", BLOCK.sub("", page), flags=re.DOTALL | re.MULTILINE)
    text = " ".join(re.sub(r"`[^`\n]*`|\]\([^)]*\)", "", text).split())
    for phrase in allowed:
        text = text.replace(phrase, "")
    return [text[max(0, found.start() - 40) : found.end() + 20] for found in FIGURE.finditer(text)]


def result_pages() -> list[str]:
    found = {str(page.relative_to(ROOT)) for page in pages() if BLOCK.search(page.read_text(encoding="utf-8"))}
    return sorted((found | ALSO) - NO_RESULTS)


@pytest.mark.parametrize("page", result_pages())
def test_result_page_states_figures_only_in_blocks(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert figures(text, [*ALLOWED.get(page, {}), *EVERYWHERE]) == []


def test_pages_with_results_are_searched():
    expected = {"README.md", "variants/feeding/queues/gpu_ring.md", "results/reference/h200/README.md", *ALLOWED}
    assert expected <= set(result_pages())


@pytest.mark.parametrize("page", ALLOWED)
def test_allowed_phrases_are_on_their_pages(page):
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert [phrase for phrase in ALLOWED[page] if phrase not in text] == []


# --- tests that show that the tests above can fail

BLOCK_TEXT = "<!-- answer:begin -->\n| ring | 2.68 µs, 92 % |\n<!-- answer:end -->\n"


@pytest.mark.parametrize(
    "sentence",
    [
        "a word takes 414 ns",
        "12.9 to 15.6 µs",
        "it carries 50 instead of 42\nGB/s each way",
        "517 M msg/s",
        "85 M messages per second",
        "250 k per second",
        "47 million blocks",
        "796 TFLOP/s",
        "reaches 92 %",
        "| 4 MiB | 96 % |",
        "up to ±12 %",
        "takes 1.3 times as long",
        "1.15 × its floor",
        "differ by a factor of up to 2.3",
        "within 0.15 s",
    ],
)
def test_figure_outside_a_block_is_found(sentence):
    assert figures(f"Text.\n{BLOCK_TEXT}\nThe ring: {sentence}.\n", []) != []


def test_blocks_settings_and_code_are_not_figures():
    page = (
        f"{BLOCK_TEXT}64 KiB, window 16, batch 256, 8192 × 4096, 4096³, two times, 2 × 3 points, 16 cores.\n"
        "`--cost-us 60 µs` and the 95 % interval; three repetitions; 0.918\n```sh\nfeedrate run   # 5 ms, 3 %\n```\n"
    )
    assert figures(page, [*EVERYWHERE]) == []


def test_allowed_phrase_covers_only_itself():
    page = "The goal was 92 % of the rate, and 92 % were reached."
    assert len(figures(page, ["The goal was 92 %"])) == 1
