"""A generated module with one kernel: C = A B, 256 x 512 x 384, f16, f32 sums."""

import tilelang
import tilelang.language as T

PLAN = {
    "name": "matmul",
    "args": [
        {"name": "a", "shape": [256, 384], "dtype": "float16"},
        {"name": "b", "shape": [384, 512], "dtype": "float16"},
    ],
    "results": [{"name": "c", "shape": [256, 512], "dtype": "float16"}],
    "temporaries": [],
    "kernels": [
        {
            "function": "kernel_0",
            "args": ["a", "b", "c"],
            "pass_configs": {"tl.enable_auto_warp_specialization": "role_based"},
            "requires": ["wgmma", "tma"],
        },
    ],
    "sizes": {"M": 256, "N": 512, "K": 384, "BM": 128, "BN": 128, "BK": 64},
}


def kernel_0():
    @T.macro
    def iter_k(a, b, t_a, t_b, acc):
        T.copy(a, t_a)
        T.copy(b, t_b)
        T.gemm(t_a, t_b, acc, policy=T.GemmWarpPolicy.FullRow)

    @T.macro
    def wrap_k(a, b, i, j, acc):
        t_a = T.alloc_shared((128, 64), "float16")
        t_b = T.alloc_shared((64, 128), "float16")
        for k in T.Pipelined(6, num_stages=3):
            iter_k(
                a[i * 128 : (i + 1) * 128, k * 64 : (k + 1) * 64],
                b[k * 64 : (k + 1) * 64, j * 128 : (j + 1) * 128],
                t_a,
                t_b,
                acc,
            )

    @T.prim_func
    def matmul(
        a: T.Tensor((256, 384), "float16"),
        b: T.Tensor((384, 512), "float16"),
        c: T.Tensor((256, 512), "float16"),
    ):
        with T.Kernel(4, 2, threads=256) as (j, i):
            t_c = T.alloc_shared((128, 128), "float16")
            acc = T.alloc_fragment((128, 128), "float32")
            T.annotate_layout({t_c: tilelang.layout.make_swizzled_layout(t_c)})
            T.clear(acc)
            wrap_k(a, b, i, j, acc)
            T.copy(acc, t_c)
            T.copy(t_c, c[i * 128 : (i + 1) * 128, j * 128 : (j + 1) * 128])

    return matmul
