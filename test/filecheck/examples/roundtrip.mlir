// RUN: cat %examples/*.mlir | cleave-opt | cleave-opt --print-op-generic | cleave-opt | filecheck %s

// Every example parses, verifies, and comes back from each printer. What each is about:

// CHECK-LABEL: algebra.graph @attention_fig5a [H, M, L, D] where [H = 32, M = 4096, L = 4096, D = 128]
// CHECK:         %l = algebra.reduce_sum %p dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:    %a = algebra.matmul %p, %v : !algebra.tensor<[H, M, D], f32>
// CHECK-NEXT:    %o = algebra.div %a, %l : !algebra.tensor<[H, M, D], f32>

// CHECK-LABEL: algebra.graph @attention_softmax [H, M, L, D] where [H = 32, M = 4096, L = 4096, D = 128]
// CHECK:         %m = algebra.reduce_max %s dim 2 : !algebra.tensor<[H, M, 1], f32>
// CHECK-NEXT:    %shifted = algebra.sub %s, %m : !algebra.tensor<[H, M, L], f32>

// CHECK-LABEL: algebra.graph @gqa [H, G, M, L, D] where [H = 8, G = 4, M = 4096, L = 4096, D = 128]
// CHECK:         %qg = algebra.reshape %q to [H, G, M, D] : !algebra.tensor<[H, G, M, D], f16>
// CHECK:         %s = algebra.matmul %qg, %kg : !algebra.tensor<[H, G, M, L], f32>

// CHECK-LABEL: algebra.graph @matmul [M, K, N] where [M = 4096, K = 4096, N = 4096]
// CHECK:         %o = algebra.matmul %x, %w : !algebra.tensor<[M, N], f32>

// CHECK-LABEL: algebra.graph @matmul_matmul [H, M, L, D] where [H = 32, M = 4096, L = 4096, D = 64]
// CHECK:         %o = algebra.matmul %s, %v : !algebra.tensor<[H, M, D], f32>

// CHECK-LABEL: algebra.graph @matmul_rowsum [M, K, N] where [M = 4096, K = 64, N = 4096]
// CHECK:         %o = algebra.reduce_sum %y dim 1 : !algebra.tensor<[M, 1], f32>

// CHECK-LABEL: algebra.graph @mha [H, M, L, D] where [H = 32, M = 4096, L = 4096, D = 128]
// CHECK:         %n = algebra.div %p, %l : !algebra.tensor<[H, M, L], f32>
// CHECK-NEXT:    %o = algebra.matmul %n, %v : !algebra.tensor<[H, M, D], f32>

// CHECK-LABEL: algebra.graph @mla_decode [B, H, L, C, R] where [B = 128, H = 128, L = 4096, C = 512, R = 64]
// CHECK:         %s = algebra.add %content, %position : !algebra.tensor<[B, H, L], f32>

// CHECK-LABEL: algebra.graph @mla_prefill [H, M, L, D, E] where [H = 128, M = 4096, L = 4096, D = 192, E = 128]
// CHECK:         %o = algebra.matmul %n, %v : !algebra.tensor<[H, M, E], f32>

// CHECK-LABEL: algebra.graph @mqa [H, M, L, D] where [H = 32, M = 4096, L = 4096, D = 128]
// CHECK:           (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[1, D, L], f16>

// CHECK-LABEL: algebra.graph @rmsnorm_matmul [M, K, N] where [M = 4096, K = 4096, N = 6144]
// CHECK:         %normal = algebra.div %x, %rms : !algebra.tensor<[M, K], f32>
// CHECK-NEXT:    %o = algebra.matmul %normal, %w : !algebra.tensor<[M, N], f32>

// CHECK-LABEL: algebra.graph @rmsnorm_matmul_scaled [M, K, N] where [M = 4096, K = 4096, N = 6144]
// CHECK:         %y = algebra.matmul %x, %w : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %o = algebra.div %y, %rms : !algebra.tensor<[M, N], f32>

// CHECK-LABEL: algebra.graph @swiglu [M, K, N] where [M = 4096, K = 4096, N = 14336]
// CHECK:         %g = algebra.silu %a : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %o = algebra.mul %g, %b : !algebra.tensor<[M, N], f32>
