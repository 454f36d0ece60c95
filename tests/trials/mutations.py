"""Breaks the measuring code, one line at a time, and checks that the tests fail.

    python tests/trials/mutations.py [--build BUILD-FOLDER] [NAME…]

Each mutation replaces a piece of source code; the tests selected by its filter must pass before the change and fail
after it. If a mutation survives, no test detects wrong measurements at that place, and the exit code is 1. The trial
edits the working tree and restores each file, rebuilds several times (minutes), and is not part of the suites.
"""

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Mutation:
    name: str
    file: str
    line: str  # a piece of the source that occurs exactly once
    mutated: str
    tests: str  # a Google Test filter


PROGRAMS = [f"test_{folder}" for folder in ("common", "kernels", "libraries", "variants", "harness", "experiments")]


MUTATIONS = [
    Mutation(
        "the load generator is never the limit",
        "experiments/feeding/generator_limit.cpp",
        "kGeneratorBound = 0.9;",
        "kGeneratorBound = 1e9;",
        "GeneratorLimit*",
    ),
    Mutation(
        "a warm-up is steady after one slice",
        "experiments/feeding/steadiness.hpp",
        "if (rates_.size() < kBlocks) return false;",
        "if (!rates_.empty()) return steady_ = true;",
        "Steadiness*",
    ),
    Mutation(
        "bounds on throughput are ten times too low",
        "experiments/feeding/bounds.cpp",
        'all.emplace_back("messages_per_second", rate);',
        'all.emplace_back("messages_per_second", rate / 10);',
        "Bounds*",
    ),
    Mutation(
        "two tries decide about a rate",
        "experiments/harness/sweep/capacity.cpp",
        "if (tries_ < kLeastTries)",
        "if (tries_ < 2)",
        "RateTest*:Capacity*:Rounds*",
    ),
    Mutation(
        "a missed bound weighs nothing",
        "experiments/harness/sweep/capacity.cpp",
        "+ missed * std::log",
        "+ 0 * missed * std::log",
        "RateTest*:Capacity*:Rounds*",
    ),
    Mutation(
        "a rate is judged with an error of 20 %",
        "experiments/harness/sweep/capacity.cpp",
        "return ratio >= 1 / RateTest::kError;",
        "return ratio >= 5;",
        "RateTest*:Capacity*:Rounds*",
    ),
    Mutation(
        "the first decision on a rate is final",
        "experiments/harness/sweep/capacity.cpp",
        "  tests_[rate].add(",
        "  if (tests_[rate].verdict() == Verdict::open) tests_[rate].add(",
        "RateTest*:Capacity*:Rounds*",
    ),
    Mutation(
        "disturbed tries do not count",
        "experiments/harness/sweep/capacity.cpp",
        "  tests_[rate].add(",
        "  if (!probes_.back().disturbed) tests_[rate].add(",
        "RateTest*:Capacity*:Rounds*",
    ),
    Mutation(
        "searches are settled one after another",
        "experiments/harness/sweep/capacity.cpp",
        "      ended[at] = !block(at);",
        "      do ended[at] = !block(at); while (!ended[at] && !all && !searches[at]->settled());",
        "RateTest*:Capacity*:Rounds*",
    ),
    Mutation(
        "an answer is never undecided",
        "experiments/harness/sweep/capacity.cpp",
        "capacity.undecided = bracketed ?",
        "capacity.undecided = false && bracketed ?",
        "RateTest*:Capacity*:Rounds*",
    ),
    Mutation(
        "the window that fills the pipeline is timed",
        "experiments/feeding/flow.cpp",
        "if (fills_the_pipe(flow, work, pass, sequence)) return;",
        "(void)fills_the_pipe(flow, work, pass, sequence);",
        "*Collecting*",
    ),
    Mutation(
        "every message is timed, regardless of the cost",
        "experiments/feeding/sampling.cpp",
        "kStampBudget = 0.02;",
        "kStampBudget = 20;",
        "Sampling*",
    ),
    Mutation(
        "a late generator is not flagged",
        "experiments/harness/load/open_load.cpp",
        "measured.flags.insert(Flag::late_generator);",
        "",
        "OpenLoad.Generator*",
    ),
    Mutation(
        "the host's pauses are a constant",
        "experiments/harness/load/open_load.cpp",
        "std::clamp(2 * pause_ns, 1000.0, kLongestPause)",
        "kLongestPause + 0 * pause_ns",
        "OpenLoad.*",
    ),
    Mutation(
        "intervals ignore repeated looks at the data",
        "experiments/harness/measure/statistics.cpp",
        "constexpr double z = 2.326348,",
        "constexpr double z = 1.5,",
        "Repeats*",
    ),
    Mutation(
        "a buffer is refilled while a kernel reads it",
        "variants/feeding/transfers/slots.hpp",
        "in_->wait(*slot.worked);",
        "",
        "*Slots*",
    ),
    Mutation(
        "a kernel does not wait for its buffer",
        "variants/feeding/transfers/slots.hpp",
        "work_->wait(*slot.filled);",
        "",
        "*Slots*",
    ),
    Mutation(
        "results overwrite others that are still being copied",
        "variants/feeding/transfers/slots.hpp",
        "work_->wait(*slot.emptied);",
        "",
        "*Slots*",
    ),
    Mutation(
        "results are copied before they are complete",
        "variants/feeding/transfers/slots.hpp",
        "out.wait(*slot.worked);",
        "",
        "*Slots*",
    ),
    Mutation(
        "gathered results go to the next message",
        "variants/feeding/transfers/gather.cpp",
        "const std::size_t begin = own.out_offsets[message] * kUnit",
        "const std::size_t begin = own.out_offsets[message / 2 * 2] * kUnit",
        "HostPolled*gather*",
    ),
    Mutation(
        "a graph keeps its first addresses",
        "variants/feeding/transfers/graph.cpp",
        "graph.change(chain.copy_in, Copy{chain.in.data(), batch.in.base, batch.in.count * batch.in.stride});",
        "",
        "HostPolled*graph*",
    ),
    Mutation(
        "full batches are held back",
        "experiments/feeding/senders.cpp",
        "longest_ns_ != 0 && n < batch_ && now",
        "longest_ns_ != 0 && n != 0 && now",
        "BatchTimeout*",
    ),
    Mutation(
        "fma_chain converges to one value",
        "kernels/workloads/fma_chain.cu",
        "float a = -1, even",
        "float a = -0.5f, even",
        "FmaChain*",
    ),
    Mutation(
        "a PRP list names a page twice",
        "variants/storage/nvme/prp.hpp",
        "list.entries[at++] = page_bus(page);",
        "list.entries[at++] = page_bus(page == 2 ? 1 : page);",
        "Prp*:NvmeController.Moves*",
    ),
    Mutation(
        "a completion that is not in flight is accepted",
        "variants/storage/nvme/queue_pair.cpp",
        "|| !flying_[state.id()].flies",
        "",
        "QueuePairByHand*",
    ),
    Mutation(
        "queues from before a reset delete new ones",
        "variants/storage/nvme/controller.cpp",
        "id.generation != generation_ || ",
        "",
        "NvmeController.OldQueues*",
    ),
    Mutation(
        "a controller reads at the file's position",
        "variants/storage/ring_controller.cpp",
        'return "offset";',
        "return nullptr;",
        "ForeignCommands*",
    ),
    Mutation(
        "lost pages of a mapping are not marked",
        "variants/storage/guarded_mapping.cpp",
        "entry->any_lost.store(true);",
        "entry->any_lost.store(false);",
        "GuardedMapping*:*ReadError*mmap*",
    ),
    Mutation(
        "bytes beyond the end of a mapped file are accepted",
        "variants/storage/engines/mmap.cpp",
        "if (size < request.offset + bytes) {",
        "if (size == 1) {",
        "*Truncated*mmap*",
    ),
    Mutation(
        "files that changed between cells are read",
        "experiments/storage/storage.cpp",
        "known.files->what_changed().empty() && ",
        "",
        "*Replaced*pread",
    ),
    Mutation(
        "the files of a failed cell are read again",
        "experiments/storage/storage.cpp",
        "if (measured.status == Status::failed) forget(files);",
        "",
        "*MediumRemoved*pread",
    ),
    Mutation(
        "a request that never ends is not named",
        "experiments/storage/run_blocks.cpp",
        'const std::string oldest = load.oldest();',
        'const std::string oldest;',
        "*NeverEnds*io_uring",
    ),
    Mutation(
        "a read that a signal interrupts fails",
        "libraries/storage/files.cpp",
        "if (moved < 0 && errno == EINTR) continue;",
        "",
        "*Interrupted*pread",
    ),
    Mutation(
        "a short read ends a request",
        "libraries/storage/files.cpp",
        "if (moved <= 0) break;",
        "if (moved <= 0 || operation == Operation::read) break;",
        "*ShortReads*pread",
    ),
    Mutation(
        "io_uring does not repeat interrupted requests",
        "libraries/storage/uring_engine.cpp",
        "if (result == -EINTR || result == -EAGAIN) return queue(slot);",
        "",
        "*Interrupted*io_uring",
    ),
    Mutation(
        "a batch reads neighbours one by one",
        "libraries/storage/plan.cpp",
        "end - plan.runs.back().offset <= rules.block;",
        "end == 0;",
        "*StorageSource*Batch*:StoragePlan*",
    ),
    Mutation(
        "records that a file no longer has are accepted",
        "libraries/storage/mover.cpp",
        "completion.error != 0 || completion.bytes < needed(*job, *run);",
        "completion.error != 0;",
        "*StorageSource*Shortened*",
    ),
]


def run(command: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def tests_pass(build: Path, mutation: Mutation) -> bool:
    ninja = run(["ninja", "-C", str(build), *(f"bin/{program}" for program in PROGRAMS)])
    if ninja.returncode != 0:
        raise SystemExit(f"{mutation.name}: does not build\n{ninja.stdout[-2000:]}")
    runs = [run([str(build / "bin" / program), f"--gtest_filter={mutation.tests}"]) for program in PROGRAMS]
    if all("Running 0 tests" in done.stdout for done in runs):
        raise SystemExit(f"{mutation.name}: no test matches {mutation.tests}")
    return all(done.returncode == 0 for done in runs)


def survives(build: Path, mutation: Mutation) -> bool:
    """Whether the tests also pass with the mutation."""
    file = ROOT / mutation.file
    source = file.read_text(encoding="utf-8")
    if source.count(mutation.line) != 1:
        raise SystemExit(f"{mutation.name}: {mutation.file} contains '{mutation.line}' {source.count(mutation.line)} times")
    if not tests_pass(build, mutation):
        raise SystemExit(f"{mutation.name}: {mutation.tests} fails even without the mutation")
    try:
        file.write_text(source.replace(mutation.line, mutation.mutated), encoding="utf-8")
        return tests_pass(build, mutation)
    finally:
        file.write_text(source, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "tests", help="a configured build folder")
    parser.add_argument("names", nargs="*", metavar="NAME", help="names of mutations; default: all")
    options = parser.parse_args()
    known = {mutation.name: mutation for mutation in MUTATIONS}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        print(f"invalid value '{unknown[0]}' for NAME; allowed: {', '.join(known)}", file=sys.stderr)
        return 2
    survivors = []
    for mutation in [known[name] for name in options.names] or MUTATIONS:
        alive = survives(options.build.resolve(), mutation)
        print(f"{'SURVIVES' if alive else 'killed  '}  {mutation.name}  ({mutation.tests})", flush=True)
        if alive:
            survivors.append(mutation.name)
    print(f"{len(survivors)} mutations survived" if survivors else "no mutation survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
