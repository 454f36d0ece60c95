"""A matrix product in Triton, as a peer of the ladder matmul (triton_matmul.cpp).

One kernel in the style of Triton's own: persistent blocks read tiles through tensor descriptors, that is, by TMA. The
fastest of the configurations is kept, as Triton's autotuner does.
"""

import torch
import triton
import triton.language as tl
from python_peer import on_stream, tensor
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def multiply(
    left, right, result, m, n, k,
    left_turned: tl.constexpr, right_turned: tl.constexpr, fp8: tl.constexpr,
    rows: tl.constexpr, columns: tl.constexpr, depth: tl.constexpr, group: tl.constexpr,
):  # fmt: skip
    """`rows` × `columns`: a tile of the result; tiles are visited in bands of `group` rows of tiles."""
    down = tl.cdiv(m, rows)
    across = tl.cdiv(n, columns)
    for tile in tl.range(tl.program_id(0), down * across, tl.num_programs(0), flatten=True):
        band = tile // (group * across)
        height = min(down - band * group, group)
        within = tile - band * group * across
        row = (band * group + within % height) * rows
        column = (within // height) * columns
        sums = tl.zeros((rows, columns), tl.float32)
        for step in range(tl.cdiv(k, depth)):
            at = step * depth
            if left_turned:
                a = left.load([at, row]).T
            else:
                a = left.load([row, at])
            if right_turned:
                b = right.load([column, at]).T
            else:
                b = right.load([at, column])
            if fp8:
                sums = tl.dot(a, b, sums, max_num_imprecise_acc=depth)
            else:
                sums = tl.dot(a, b, sums, input_precision="tf32")
        result.store([row, column], sums.to(result.dtype))


# Tile rows, columns and depth in bytes, stages, warps.
LARGE = [(128, 256, 128, 3, 8), (128, 256, 128, 4, 8), (256, 128, 128, 3, 8), (128, 128, 128, 4, 8), (128, 128, 128, 5, 4)]
SMALL = [(64, 32, 256, 6, 4), (64, 64, 256, 5, 4), (64, 64, 128, 8, 4), (64, 128, 128, 6, 4)]


class Peer:
    def __init__(self, dtype, left_transposed, right_transposed):
        self.dtype = dtype
        self.turned = (bool(left_transposed), bool(right_transposed))
        self.chosen = {"version": triton.__version__}
        self.config = None

    def queue(self, stream, left, right, result):
        tensors = [tensor(each)[0] for each in (left, right, result)]
        with on_stream(stream):
            if self.config is None:
                self.config = self.fastest(tensors)
                rows, columns, depth, stages, warps = self.config
                self.chosen["tile"] = f"{rows} x {columns}, {depth} bytes of depth, {stages} stages, {warps} warps"
            self.launch(self.config, *tensors)

    def fastest(self, tensors):
        """The configuration with the lowest median time; those that need too much memory do not compile."""
        times = {}
        for config in SMALL if tensors[2].shape[0] <= 64 else LARGE:
            try:
                times[config] = triton.testing.do_bench(
                    lambda config=config: self.launch(config, *tensors), warmup=5, rep=20, return_mode="median"
                )
            except (triton.OutOfResources, triton.CompilationError) as error:
                self.chosen["failed"] = f"{config}: {error}".splitlines()[0]
        if not times:
            raise RuntimeError(f"no configuration works; {self.chosen['failed']}")
        self.chosen["configurations"] = f"the fastest of {len(times)}"
        return min(times, key=times.get)

    def launch(self, config, left, right, result):
        rows, columns, depth, stages, warps = config
        depth //= left.element_size()
        m, n = result.shape
        k = left.shape[0] if self.turned[0] else left.shape[1]

        def described(matrix, block, turned):
            return TensorDescriptor.from_tensor(matrix, block[::-1] if turned else block)

        tiles = triton.cdiv(m, rows) * triton.cdiv(n, columns)
        blocks = torch.cuda.get_device_properties(left.device).multi_processor_count
        multiply[(min(tiles, blocks),)](
            described(left, [rows, depth], self.turned[0]),
            described(right, [depth, columns], self.turned[1]),
            described(result, [rows, columns], False),
            m, n, k, self.turned[0], self.turned[1], self.dtype == "fp8", rows, columns, depth, 8,
            num_warps=warps, num_stages=stages,
        )  # fmt: skip
