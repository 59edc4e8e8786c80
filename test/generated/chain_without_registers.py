"""
A generated module that is legal TileLang and a bad kernel: two matmuls in a loop.

Role-based warp specialization lays it out for two threadblocks a multiprocessor, whose
registers do not hold both accumulators (`cleave.lowering.cuda` says why).
"""

import tilelang.language as T

PLAN = {
    "name": "chain",
    "args": [
        {"name": "q", "shape": [256, 64], "dtype": "float16"},
        {"name": "k", "shape": [256, 64], "dtype": "float16"},
        {"name": "v", "shape": [256, 64], "dtype": "float16"},
    ],
    "results": [{"name": "o", "shape": [256, 64], "dtype": "float32"}],
    "temporaries": [],
    "kernels": [
        {
            "function": "kernel_0",
            "args": ["q", "k", "v", "o"],
            "pass_configs": {"tl.enable_auto_warp_specialization": "role_based"},
            "requires": ["wgmma", "tma"],
        },
    ],
    "sizes": {"M": 256, "L": 256, "D": 64, "BM": 128, "BL": 128},
}


def kernel_0():
    @T.prim_func
    def chain(
        q: T.Tensor((256, 64), "float16"),
        k: T.Tensor((256, 64), "float16"),
        v: T.Tensor((256, 64), "float16"),
        o: T.Tensor((256, 64), "float32"),
    ):
        with T.Kernel(2, threads=256) as i:
            t_q = T.alloc_shared((128, 64), "float16")
            t_k = T.alloc_shared((128, 64), "float16")
            t_v = T.alloc_shared((128, 64), "float16")
            s = T.alloc_fragment((128, 128), "float32")
            p = T.alloc_fragment((128, 128), "float16")
            acc = T.alloc_fragment((128, 64), "float32")
            T.copy(q[i * 128 : (i + 1) * 128, :], t_q)
            T.clear(acc)
            for j in T.Pipelined(2, num_stages=2):
                T.copy(k[j * 128 : (j + 1) * 128, :], t_k)
                T.gemm(
                    t_q,
                    t_k,
                    s,
                    transpose_B=True,
                    policy=T.GemmWarpPolicy.FullRow,
                    clear_accum=True,
                )
                T.copy(s, p)
                T.copy(v[j * 128 : (j + 1) * 128, :], t_v)
                T.gemm(p, t_v, acc, policy=T.GemmWarpPolicy.FullRow)
            T.copy(acc, o[i * 128 : (i + 1) * 128, :])

    return chain
