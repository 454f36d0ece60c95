"""A linear layer with GELU in PyTorch's eager mode, as a peer of the ladder linear (pytorch_linear.cpp).

The operators are those that autograd runs for torch.nn.functional.linear and gelu, called with the memory of their
results, so that no result is copied. The bias has the type of the weight, as in a layer of PyTorch.
"""

import torch
from python_peer import on_stream, tensor

ATEN = torch.ops.aten


class Peer:
    def __init__(self, passes):
        self.passes = passes
        self.chosen = {"version": torch.__version__}
        self.bias = None

    def queue(self, stream, x, weight, bias, gradient_y, before, y, gradient_x, gradient_weight, gradient_bias, slope):
        torch.backends.cuda.matmul.allow_tf32 = x.dtype == "tf32"
        x, weight, gradient_y, before, y, gradient_x, gradient_weight, slope = (
            tensor(each)[0] for each in (x, weight, gradient_y, before, y, gradient_x, gradient_weight, slope)
        )
        with on_stream(stream):
            if self.bias is None:
                self.bias = tensor(bias)[0, 0].to(weight.dtype)
            if "forward" in self.passes:
                torch.addmm(self.bias, x, weight.t(), out=before)
                ATEN.gelu.out(before, approximate="tanh", out=y)
            if self.passes != ["forward"]:
                ATEN.gelu_backward.grad_input(gradient_y, before, approximate="tanh", grad_input=slope)
            if "backward_input" in self.passes:
                torch.mm(slope, weight, out=gradient_x)
            if "backward_weight" in self.passes:
                torch.mm(slope.t(), x, out=gradient_weight)
            if "backward_bias" in self.passes:
                torch.sum(slope, 0, keepdim=True, dtype=torch.float32, out=tensor(gradient_bias)[0])
