"""
A generated module with two kernels: row sums of X W, split over the columns of W.

`kernel_0` leaves a partial sum a split in the temporary `part`, `kernel_1` adds them.
M is dynamic, and `y` is seen as [M] where the caller has [M, 1].
"""

import tilelang.language as T

PLAN = {
    "name": "matmul_rowsum",
    "args": [
        {"name": "x", "shape": ["M", 64], "dtype": "float16"},
        {"name": "w", "shape": [64, 1024], "dtype": "float16"},
    ],
    "results": [{"name": "y", "shape": ["M", 1], "dtype": "float32"}],
    "temporaries": [{"name": "part", "shape": [4, "M"], "dtype": "float32"}],
    "kernels": [
        {
            "function": "kernel_0",
            "args": ["x", "w", "part"],
            "pass_configs": {"tl.enable_fast_math": True},
            "requires": ["wgmma", "tma"],
        },
        {
            "function": "kernel_1",
            "args": ["part", {"name": "y", "shape": ["M"]}],
            "pass_configs": {},
            "requires": [],
        },
    ],
    "sizes": {"N": 1024, "K": 64, "s": 4, "BM": 128, "BN": 128},
}


def kernel_0():
    M = T.dynamic("M")

    @T.prim_func
    def partial_sums(
        x: T.Tensor((M, 64), "float16"),
        w: T.Tensor((64, 1024), "float16"),
        part: T.Tensor((4, M), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, 128), 4, threads=256) as (i, z):
            t_x = T.alloc_shared((128, 64), "float16")
            t_w = T.alloc_shared((64, 128), "float16")
            s = T.alloc_fragment((128, 128), "float32")
            r = T.alloc_fragment((128,), "float32")
            acc = T.alloc_fragment((128,), "float32")
            T.copy(x[i * 128 : (i + 1) * 128, :], t_x)
            T.fill(acc, 0)
            for j in T.Pipelined(2, num_stages=2):
                T.copy(w[:, (z * 2 + j) * 128 : (z * 2 + j + 1) * 128], t_w)
                T.gemm(t_x, t_w, s, policy=T.GemmWarpPolicy.FullRow, clear_accum=True)
                T.reduce_sum(s, r, dim=1)
                for m in T.Parallel(128):
                    acc[m] += r[m]
            T.copy(acc, part[z, i * 128 : (i + 1) * 128])

    return partial_sums


def kernel_1():
    M = T.dynamic("M")

    @T.prim_func
    def add_up(part: T.Tensor((4, M), "float32"), y: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 128), threads=128) as i:
            acc = T.alloc_fragment((128,), "float32")
            for m in T.Parallel(128):
                acc[m] = 0.0
                for z in T.serial(4):
                    acc[m] += part[z, i * 128 + m]
            T.copy(acc, y[i * 128 : (i + 1) * 128])

    return add_up
