"""PyTorch's matrix product, as a peer of the ladder matmul (pytorch_matmul.cpp)."""

import torch
from python_peer import on_stream, tensor


class Peer:
    def __init__(self, dtype, left_transposed, right_transposed):
        self.dtype = dtype
        self.turned = (left_transposed, right_transposed)
        self.chosen = {"version": torch.__version__}
        if dtype == "fp8":
            self.one = torch.ones((), device="cuda")

    def queue(self, stream, left, right, result):
        left, right = (
            tensor(each).transpose(1, 2) if turned else tensor(each)
            for each, turned in zip((left, right), self.turned, strict=True)
        )
        result = tensor(result)
        torch.backends.cuda.matmul.allow_tf32 = self.dtype == "tf32"
        with on_stream(stream):
            if self.dtype == "fp8":  # what torch.nn.functional.scaled_mm calls
                torch.ops.aten._scaled_mm.out(
                    left[0], right[0], self.one, self.one, None, None, torch.bfloat16, False, out=result[0]
                )
            elif len(result) == 1:
                torch.mm(left[0], right[0], out=result[0])
            else:
                torch.bmm(left, right, out=result)
