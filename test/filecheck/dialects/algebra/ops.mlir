// RUN: XDSL_ROUNDTRIP
// RUN: XDSL_GENERIC_ROUNDTRIP

// Matmul and reductions. Types follow from the operands and are printed always.
algebra.graph @contraction [B, G, M, K, N] where [B = 8, K >= 64]
    (%a: !algebra.tensor<[B, M, K], f16>, %b: !algebra.tensor<[B, K, N], f16>,
     %c: !algebra.tensor<[B, K, M], bf16>, %d: !algebra.tensor<[1, N, K], bf16>,
     %e: !algebra.tensor<[G, B, M, K], f32>, %f: !algebra.tensor<[K, N], f32>)
    -> (!algebra.tensor<[B, M, N], f16>, !algebra.tensor<[G, B, M, N], f32>) {
  %plain = algebra.matmul %a, %b
  %transposed = algebra.matmul %c, %d transpose_lhs transpose_rhs
  %wide = algebra.matmul %e, %f precision tf32
  %mixed = algebra.matmul %e, %b
  %sum = algebra.reduce_sum %plain dim 1
  %max = algebra.reduce_max %wide dim 3
  %reference = algebra.reference %wide dim 0
  algebra.return %plain, %wide
}

// CHECK-LABEL: algebra.graph @contraction [B, G, M, K, N] where [B = 8, K >= 64]
// CHECK-NEXT:      (%a: !algebra.tensor<[B, M, K], f16>, %b: !algebra.tensor<[B, K, N], f16>, %c: !algebra.tensor<[B, K, M], bf16>, %d: !algebra.tensor<[1, N, K], bf16>, %e: !algebra.tensor<[G, B, M, K], f32>, %f: !algebra.tensor<[K, N], f32>)
// CHECK-NEXT:      -> (!algebra.tensor<[B, M, N], f16>, !algebra.tensor<[G, B, M, N], f32>) {
// CHECK-NEXT:    %plain = algebra.matmul %a, %b : !algebra.tensor<[B, M, N], f32>
// CHECK-NEXT:    %transposed = algebra.matmul %c, %d transpose_lhs transpose_rhs : !algebra.tensor<[B, M, N], f32>
// CHECK-NEXT:    %wide = algebra.matmul %e, %f precision tf32 : !algebra.tensor<[G, B, M, N], f32>
// CHECK-NEXT:    %mixed = algebra.matmul %e, %b : !algebra.tensor<[G, B, M, N], f32>
// CHECK-NEXT:    %sum = algebra.reduce_sum %plain dim 1 : !algebra.tensor<[B, 1, N], f32>
// CHECK-NEXT:    %max = algebra.reduce_max %wide dim 3 : !algebra.tensor<[G, B, M, 1], f32>
// CHECK-NEXT:    %reference = algebra.reference %wide dim 0 : !algebra.tensor<[1, B, M, N], f32>
// CHECK-NEXT:    algebra.return %plain, %wide
// CHECK-NEXT:  }

// CHECK-GENERIC-LABEL: "algebra.graph"() <{sym_name = "contraction", symbols = ["B", "G", "M", "K", "N"], where = [#algebra.fact<B = 8>, #algebra.fact<K >= 64>], outputs = [!algebra.tensor<[B, M, N], f16>, !algebra.tensor<[G, B, M, N], f32>]}> ({
// CHECK-GENERIC-NEXT:  ^bb0(%a: !algebra.tensor<[B, M, K], f16>, %b: !algebra.tensor<[B, K, N], f16>, %c: !algebra.tensor<[B, K, M], bf16>, %d: !algebra.tensor<[1, N, K], bf16>, %e: !algebra.tensor<[G, B, M, K], f32>, %f: !algebra.tensor<[K, N], f32>):
// CHECK-GENERIC-NEXT:    %plain = "algebra.matmul"(%a, %b) : (!algebra.tensor<[B, M, K], f16>, !algebra.tensor<[B, K, N], f16>) -> !algebra.tensor<[B, M, N], f32>
// CHECK-GENERIC-NEXT:    %transposed = "algebra.matmul"(%c, %d) <{transpose_lhs, transpose_rhs}> : (!algebra.tensor<[B, K, M], bf16>, !algebra.tensor<[1, N, K], bf16>) -> !algebra.tensor<[B, M, N], f32>
// CHECK-GENERIC-NEXT:    %wide = "algebra.matmul"(%e, %f) <{precision = "tf32"}> : (!algebra.tensor<[G, B, M, K], f32>, !algebra.tensor<[K, N], f32>) -> !algebra.tensor<[G, B, M, N], f32>
// CHECK-GENERIC-NEXT:    %mixed = "algebra.matmul"(%e, %b) : (!algebra.tensor<[G, B, M, K], f32>, !algebra.tensor<[B, K, N], f16>) -> !algebra.tensor<[G, B, M, N], f32>
// CHECK-GENERIC-NEXT:    %sum = "algebra.reduce_sum"(%plain) <{dim = 1 : i64}> : (!algebra.tensor<[B, M, N], f32>) -> !algebra.tensor<[B, 1, N], f32>
// CHECK-GENERIC-NEXT:    %max = "algebra.reduce_max"(%wide) <{dim = 3 : i64}> : (!algebra.tensor<[G, B, M, N], f32>) -> !algebra.tensor<[G, B, M, 1], f32>
// CHECK-GENERIC-NEXT:    %reference = "algebra.reference"(%wide) <{dim = 0 : i64}> : (!algebra.tensor<[G, B, M, N], f32>) -> !algebra.tensor<[1, B, M, N], f32>
// CHECK-GENERIC-NEXT:    "algebra.return"(%plain, %wide) : (!algebra.tensor<[B, M, N], f32>, !algebra.tensor<[G, B, M, N], f32>) -> ()
// CHECK-GENERIC-NEXT:  }) : () -> ()

// -----

// Elementwise operators; dims of size 1 and missing leading dims are broadcast.
algebra.graph @elementwise [M, N]
    (%x: !algebra.tensor<[M, N], f16>, %row: !algebra.tensor<[M, 1], bf16>,
     %column: !algebra.tensor<[N], f64>, %one: !algebra.tensor<[], f32>,
     %mask: !algebra.tensor<[M, N], i1>, %count: !algebra.tensor<[N], i32>)
    -> (!algebra.tensor<[M, N], f32>) {
  %exp = algebra.exp %x
  %exp2 = algebra.exp2 %x
  %log = algebra.log %x
  %log2 = algebra.log2 %x
  %sqrt = algebra.sqrt %x
  %rsqrt = algebra.rsqrt %x
  %square = algebra.square %x
  %neg = algebra.neg %x
  %abs = algebra.abs %x
  %relu = algebra.relu %x
  %tanh = algebra.tanh %x
  %sigmoid = algebra.sigmoid %x
  %silu = algebra.silu %x
  %erf = algebra.erf %x
  %gelu = algebra.gelu %x
  %softplus = algebra.softplus %x
  %add = algebra.add %x, %row
  %sub = algebra.sub %row, %x
  %mul = algebra.mul %row, %column
  %div = algebra.div %x, %one
  %max = algebra.max %column, %x
  %min = algebra.min %x, %x
  %select = algebra.select %mask, %x, %one
  %narrow = algebra.cast %x to bf16
  %ones = algebra.cast %mask to f32
  %long = algebra.cast %count to i64
  algebra.return %exp
}

// CHECK-LABEL: algebra.graph @elementwise [M, N]
// CHECK-NEXT:      (%x: !algebra.tensor<[M, N], f16>, %row: !algebra.tensor<[M, 1], bf16>, %column: !algebra.tensor<[N], f64>, %one: !algebra.tensor<[], f32>, %mask: !algebra.tensor<[M, N], i1>, %count: !algebra.tensor<[N], i32>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, N], f32>) {
// CHECK-NEXT:    %exp = algebra.exp %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %exp2 = algebra.exp2 %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %log = algebra.log %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %log2 = algebra.log2 %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %sqrt = algebra.sqrt %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %rsqrt = algebra.rsqrt %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %square = algebra.square %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %neg = algebra.neg %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %abs = algebra.abs %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %relu = algebra.relu %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %tanh = algebra.tanh %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %sigmoid = algebra.sigmoid %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %silu = algebra.silu %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %erf = algebra.erf %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %gelu = algebra.gelu %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %softplus = algebra.softplus %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %add = algebra.add %x, %row : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %sub = algebra.sub %row, %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %mul = algebra.mul %row, %column : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %div = algebra.div %x, %one : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %max = algebra.max %column, %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %min = algebra.min %x, %x : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %select = algebra.select %mask, %x, %one : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %narrow = algebra.cast %x to bf16 : !algebra.tensor<[M, N], bf16>
// CHECK-NEXT:    %ones = algebra.cast %mask to f32 : !algebra.tensor<[M, N], f32>
// CHECK-NEXT:    %long = algebra.cast %count to i64 : !algebra.tensor<[N], i64>
// CHECK-NEXT:    algebra.return %exp
// CHECK-NEXT:  }

// CHECK-GENERIC-LABEL: "algebra.graph"() <{sym_name = "elementwise", symbols = ["M", "N"], where = [], outputs = [!algebra.tensor<[M, N], f32>]}> ({
// CHECK-GENERIC-NEXT:  ^bb0(%x: !algebra.tensor<[M, N], f16>, %row: !algebra.tensor<[M, 1], bf16>, %column: !algebra.tensor<[N], f64>, %one: !algebra.tensor<[], f32>, %mask: !algebra.tensor<[M, N], i1>, %count: !algebra.tensor<[N], i32>):
// CHECK-GENERIC-NEXT:    %exp = "algebra.exp"(%x) : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %exp2 = "algebra.exp2"(%x) : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %log = "algebra.log"(%x) : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %log2 = "algebra.log2"(%x) : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %sqrt = "algebra.sqrt"(%x) : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %rsqrt = "algebra.rsqrt"(%x) : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %square = "algebra.square"(%x) : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %neg = "algebra.neg"(%x) : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %abs = "algebra.abs"(%x) : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %relu = "algebra.relu"(%x) : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %tanh = "algebra.tanh"(%x) : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %sigmoid = "algebra.sigmoid"(%x) : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %silu = "algebra.silu"(%x) : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %erf = "algebra.erf"(%x) : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %gelu = "algebra.gelu"(%x) : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %softplus = "algebra.softplus"(%x) : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %add = "algebra.add"(%x, %row) : (!algebra.tensor<[M, N], f16>, !algebra.tensor<[M, 1], bf16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %sub = "algebra.sub"(%row, %x) : (!algebra.tensor<[M, 1], bf16>, !algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %mul = "algebra.mul"(%row, %column) : (!algebra.tensor<[M, 1], bf16>, !algebra.tensor<[N], f64>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %div = "algebra.div"(%x, %one) : (!algebra.tensor<[M, N], f16>, !algebra.tensor<[], f32>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %max = "algebra.max"(%column, %x) : (!algebra.tensor<[N], f64>, !algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %min = "algebra.min"(%x, %x) : (!algebra.tensor<[M, N], f16>, !algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %select = "algebra.select"(%mask, %x, %one) : (!algebra.tensor<[M, N], i1>, !algebra.tensor<[M, N], f16>, !algebra.tensor<[], f32>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %narrow = "algebra.cast"(%x) <{element_type = bf16}> : (!algebra.tensor<[M, N], f16>) -> !algebra.tensor<[M, N], bf16>
// CHECK-GENERIC-NEXT:    %ones = "algebra.cast"(%mask) <{element_type = f32}> : (!algebra.tensor<[M, N], i1>) -> !algebra.tensor<[M, N], f32>
// CHECK-GENERIC-NEXT:    %long = "algebra.cast"(%count) <{element_type = i64}> : (!algebra.tensor<[N], i32>) -> !algebra.tensor<[N], i64>
// CHECK-GENERIC-NEXT:    "algebra.return"(%exp) : (!algebra.tensor<[M, N], f32>) -> ()
// CHECK-GENERIC-NEXT:  }) : () -> ()

// -----

// Generators have no operands to take a type from.
algebra.graph @generators [M, L]
    (%unused: !algebra.tensor<[M], i64>) -> (!algebra.tensor<[M, L], i1>, !algebra.tensor<[M, L], f32>) {
  %float = algebra.constant 0.125 : !algebra.tensor<[], f32>
  %tiny = algebra.constant 1.0e-06 : !algebra.tensor<[M, 1], f32>
  %negative = algebra.constant -3.5 : !algebra.tensor<[], f32>
  %least = algebra.constant -inf : !algebra.tensor<[], f32>
  %greatest = algebra.constant inf : !algebra.tensor<[M, L], f32>
  %integer = algebra.constant 4 : !algebra.tensor<[], f16>
  %size = algebra.constant 2 * M + L floordiv 2 : !algebra.tensor<[], i64>
  %below = algebra.constant -2 * M + L * 3 - 7 : !algebra.tensor<[], i32>
  %causal = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
  %window = algebra.window diagonal 0 size 128 : !algebra.tensor<[2, M, L], i1>
  %iota = algebra.iota dim 1 : !algebra.tensor<[M, L], i32>
  %later = algebra.iota dim 0 start M + 1 : !algebra.tensor<[M], i32>
  algebra.return %causal, %greatest
}

// CHECK-LABEL: algebra.graph @generators [M, L]
// CHECK-NEXT:      (%unused: !algebra.tensor<[M], i64>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, L], i1>, !algebra.tensor<[M, L], f32>) {
// CHECK-NEXT:    %float = algebra.constant 0.125 : !algebra.tensor<[], f32>
// CHECK-NEXT:    %tiny = algebra.constant 1.0e-06 : !algebra.tensor<[M, 1], f32>
// CHECK-NEXT:    %negative = algebra.constant -3.5 : !algebra.tensor<[], f32>
// CHECK-NEXT:    %least = algebra.constant -inf : !algebra.tensor<[], f32>
// CHECK-NEXT:    %greatest = algebra.constant inf : !algebra.tensor<[M, L], f32>
// CHECK-NEXT:    %integer = algebra.constant 4 : !algebra.tensor<[], f16>
// CHECK-NEXT:    %size = algebra.constant 2 * M + L floordiv 2 : !algebra.tensor<[], i64>
// CHECK-NEXT:    %below = algebra.constant 3 * L - 2 * M - 7 : !algebra.tensor<[], i32>
// CHECK-NEXT:    %causal = algebra.causal diagonal L - M : !algebra.tensor<[M, L], i1>
// CHECK-NEXT:    %window = algebra.window diagonal 0 size 128 : !algebra.tensor<[2, M, L], i1>
// CHECK-NEXT:    %iota = algebra.iota dim 1 : !algebra.tensor<[M, L], i32>
// CHECK-NEXT:    %later = algebra.iota dim 0 start M + 1 : !algebra.tensor<[M], i32>
// CHECK-NEXT:    algebra.return %causal, %greatest
// CHECK-NEXT:  }

// CHECK-GENERIC-LABEL: "algebra.graph"() <{sym_name = "generators", symbols = ["M", "L"], where = [], outputs = [!algebra.tensor<[M, L], i1>, !algebra.tensor<[M, L], f32>]}> ({
// CHECK-GENERIC-NEXT:  ^bb0(%unused: !algebra.tensor<[M], i64>):
// CHECK-GENERIC-NEXT:    %float = "algebra.constant"() <{value = 1.250000e-01 : f64}> : () -> !algebra.tensor<[], f32>
// CHECK-GENERIC-NEXT:    %tiny = "algebra.constant"() <{value = 1.000000e-06 : f64}> : () -> !algebra.tensor<[M, 1], f32>
// CHECK-GENERIC-NEXT:    %negative = "algebra.constant"() <{value = -3.500000e+00 : f64}> : () -> !algebra.tensor<[], f32>
// CHECK-GENERIC-NEXT:    %least = "algebra.constant"() <{value = 0xfff0000000000000 : f64}> : () -> !algebra.tensor<[], f32>
// CHECK-GENERIC-NEXT:    %greatest = "algebra.constant"() <{value = 0x7ff0000000000000 : f64}> : () -> !algebra.tensor<[M, L], f32>
// CHECK-GENERIC-NEXT:    %integer = "algebra.constant"() <{value = #algebra.dim<4>}> : () -> !algebra.tensor<[], f16>
// CHECK-GENERIC-NEXT:    %size = "algebra.constant"() <{value = #algebra.dim<2 * M + L floordiv 2>}> : () -> !algebra.tensor<[], i64>
// CHECK-GENERIC-NEXT:    %below = "algebra.constant"() <{value = #algebra.dim<3 * L - 2 * M - 7>}> : () -> !algebra.tensor<[], i32>
// CHECK-GENERIC-NEXT:    %causal = "algebra.causal"() <{diagonal = #algebra.dim<L - M>}> : () -> !algebra.tensor<[M, L], i1>
// CHECK-GENERIC-NEXT:    %window = "algebra.window"() <{diagonal = #algebra.dim<0>, size = #algebra.dim<128>}> : () -> !algebra.tensor<[2, M, L], i1>
// CHECK-GENERIC-NEXT:    %iota = "algebra.iota"() <{dim = 1 : i64}> : () -> !algebra.tensor<[M, L], i32>
// CHECK-GENERIC-NEXT:    %later = "algebra.iota"() <{dim = 0 : i64, start = #algebra.dim<M + 1>}> : () -> !algebra.tensor<[M], i32>
// CHECK-GENERIC-NEXT:    "algebra.return"(%causal, %greatest) : (!algebra.tensor<[M, L], i1>, !algebra.tensor<[M, L], f32>) -> ()
// CHECK-GENERIC-NEXT:  }) : () -> ()

// -----

// Views. A reshape may be of a value of one element, and to a scalar.
algebra.graph @views [H, G, M, K, s] where [s | K]
    (%q: !algebra.tensor<[H * G, M, K], f16>, %one: !algebra.tensor<[1, 1], f32>)
    -> (!algebra.tensor<[H, G, M, K], f16>, !algebra.tensor<[s, H * G, M, 1], f32>, !algebra.tensor<[], f32>) {
  %qg = algebra.reshape %q to [H, G, M, K]
  %scalar = algebra.reshape %one to []
  %t = algebra.transpose %q permutation [0, 2, 1]
  %parts = algebra.split %q dim 2 count s
  %halves = algebra.split %parts dim 0 count 1
  %sums = algebra.reduce_sum %parts dim 3
  algebra.return %qg, %sums, %scalar
}

// CHECK-LABEL: algebra.graph @views [H, G, M, K, s] where [s | K]
// CHECK-NEXT:      (%q: !algebra.tensor<[G * H, M, K], f16>, %one: !algebra.tensor<[1, 1], f32>)
// CHECK-NEXT:      -> (!algebra.tensor<[H, G, M, K], f16>, !algebra.tensor<[s, G * H, M, 1], f32>, !algebra.tensor<[], f32>) {
// CHECK-NEXT:    %qg = algebra.reshape %q to [H, G, M, K] : !algebra.tensor<[H, G, M, K], f16>
// CHECK-NEXT:    %scalar = algebra.reshape %one to [] : !algebra.tensor<[], f32>
// CHECK-NEXT:    %t = algebra.transpose %q permutation [0, 2, 1] : !algebra.tensor<[G * H, K, M], f16>
// CHECK-NEXT:    %parts = algebra.split %q dim 2 count s : !algebra.tensor<[s, G * H, M, K floordiv s], f16>
// CHECK-NEXT:    %halves = algebra.split %parts dim 0 count 1 : !algebra.tensor<[1, s, G * H, M, K floordiv s], f16>
// CHECK-NEXT:    %sums = algebra.reduce_sum %parts dim 3 : !algebra.tensor<[s, G * H, M, 1], f32>
// CHECK-NEXT:    algebra.return %qg, %sums, %scalar
// CHECK-NEXT:  }

// CHECK-GENERIC-LABEL: "algebra.graph"() <{sym_name = "views", symbols = ["H", "G", "M", "K", "s"], where = [#algebra.fact<s | K>], outputs = [!algebra.tensor<[H, G, M, K], f16>, !algebra.tensor<[s, G * H, M, 1], f32>, !algebra.tensor<[], f32>]}> ({
// CHECK-GENERIC-NEXT:  ^bb0(%q: !algebra.tensor<[G * H, M, K], f16>, %one: !algebra.tensor<[1, 1], f32>):
// CHECK-GENERIC-NEXT:    %qg = "algebra.reshape"(%q) <{shape = [#algebra.dim<H>, #algebra.dim<G>, #algebra.dim<M>, #algebra.dim<K>]}> : (!algebra.tensor<[G * H, M, K], f16>) -> !algebra.tensor<[H, G, M, K], f16>
// CHECK-GENERIC-NEXT:    %scalar = "algebra.reshape"(%one) <{shape = []}> : (!algebra.tensor<[1, 1], f32>) -> !algebra.tensor<[], f32>
// CHECK-GENERIC-NEXT:    %t = "algebra.transpose"(%q) <{permutation = [0 : i64, 2 : i64, 1 : i64]}> : (!algebra.tensor<[G * H, M, K], f16>) -> !algebra.tensor<[G * H, K, M], f16>
// CHECK-GENERIC-NEXT:    %parts = "algebra.split"(%q) <{dim = 2 : i64, count = #algebra.dim<s>}> : (!algebra.tensor<[G * H, M, K], f16>) -> !algebra.tensor<[s, G * H, M, K floordiv s], f16>
// CHECK-GENERIC-NEXT:    %halves = "algebra.split"(%parts) <{dim = 0 : i64, count = #algebra.dim<1>}> : (!algebra.tensor<[s, G * H, M, K floordiv s], f16>) -> !algebra.tensor<[1, s, G * H, M, K floordiv s], f16>
// CHECK-GENERIC-NEXT:    %sums = "algebra.reduce_sum"(%parts) <{dim = 3 : i64}> : (!algebra.tensor<[s, G * H, M, K floordiv s], f16>) -> !algebra.tensor<[s, G * H, M, 1], f32>
// CHECK-GENERIC-NEXT:    "algebra.return"(%qg, %sums, %scalar) : (!algebra.tensor<[H, G, M, K], f16>, !algebra.tensor<[s, G * H, M, 1], f32>, !algebra.tensor<[], f32>) -> ()
// CHECK-GENERIC-NEXT:  }) : () -> ()

// -----

// A count that does not divide: the last part has fewer positions, which a mask tells.
algebra.graph @uneven [M, K, s, C] where [s * C >= K]
    (%x: !algebra.tensor<[M, K], f16>) -> (!algebra.tensor<[s, M, 1], f32>) {
  %parts = algebra.split %x dim 1 count s chunk C
  %within = algebra.within part 0 dim 2 chunk C limit K : !algebra.tensor<[s, 1, C], i1>
  %hidden = algebra.constant -inf : !algebra.tensor<[], f32>
  %seen = algebra.select %within, %parts, %hidden
  %greatest = algebra.reduce_max %seen dim 2
  algebra.return %greatest
}

// CHECK-LABEL: algebra.graph @uneven [M, K, s, C] where [s * C >= K]
// CHECK:         %parts = algebra.split %x dim 1 count s chunk C : !algebra.tensor<[s, M, C], f16>
// CHECK-NEXT:    %within = algebra.within part 0 dim 2 chunk C limit K : !algebra.tensor<[s, 1, C], i1>
// CHECK:         %seen = algebra.select %within, %parts, %hidden : !algebra.tensor<[s, M, C], f32>

// CHECK-GENERIC-LABEL: sym_name = "uneven"
// CHECK-GENERIC:         %parts = "algebra.split"(%x) <{dim = 1 : i64, count = #algebra.dim<s>, chunk = #algebra.dim<C>}> : (!algebra.tensor<[M, K], f16>) -> !algebra.tensor<[s, M, C], f16>
// CHECK-GENERIC-NEXT:    %within = "algebra.within"() <{part = 0 : i64, dim = 2 : i64, chunk = #algebra.dim<C>, limit = #algebra.dim<K>}> : () -> !algebra.tensor<[s, 1, C], i1>

// -----

// A type may be written, attributes stand before it, and names need no hint.
algebra.graph @written
    (%0: !algebra.tensor<[16, 64], f32>) -> (!algebra.tensor<[16, 64], f16>)
    attributes {seeds = [1, 2], dims = [#algebra.dim<64>, #algebra.dim<min(M, 4) * (M mod 8)>],
                facts = [#algebra.fact<s | K>, #algebra.fact<L >= M + 1>, #algebra.fact<M <= L>]} {
  %1 = algebra.exp %0 {note = "kept", dim = #algebra.dim<4>} : !algebra.tensor<[16, 64], f32>
  %2 = algebra.cast %1 to f16 : !algebra.tensor<[16, 64], f16>
  algebra.return %2
}

// CHECK-LABEL: algebra.graph @written
// CHECK-NEXT:      (%0: !algebra.tensor<[16, 64], f32>)
// CHECK-NEXT:      -> (!algebra.tensor<[16, 64], f16>)
// CHECK-NEXT:      attributes {seeds = [1 : i64, 2 : i64], dims = [#algebra.dim<64>, #algebra.dim<min(M, 4) * (M mod 8)>], facts = [#algebra.fact<s | K>, #algebra.fact<L >= M + 1>, #algebra.fact<M <= L>]} {
// CHECK-NEXT:    %1 = algebra.exp %0 {note = "kept", dim = #algebra.dim<4>} : !algebra.tensor<[16, 64], f32>
// CHECK-NEXT:    %2 = algebra.cast %1 to f16 : !algebra.tensor<[16, 64], f16>
// CHECK-NEXT:    algebra.return %2
// CHECK-NEXT:  }

// CHECK-GENERIC-LABEL: "algebra.graph"() <{sym_name = "written", symbols = [], where = [], outputs = [!algebra.tensor<[16, 64], f16>]}> ({
// CHECK-GENERIC-NEXT:  ^bb0(%0: !algebra.tensor<[16, 64], f32>):
// CHECK-GENERIC-NEXT:    %1 = "algebra.exp"(%0) {note = "kept", dim = #algebra.dim<4>} : (!algebra.tensor<[16, 64], f32>) -> !algebra.tensor<[16, 64], f32>
// CHECK-GENERIC-NEXT:    %2 = "algebra.cast"(%1) <{element_type = f16}> : (!algebra.tensor<[16, 64], f32>) -> !algebra.tensor<[16, 64], f16>
// CHECK-GENERIC-NEXT:    "algebra.return"(%2) : (!algebra.tensor<[16, 64], f16>) -> ()
// CHECK-GENERIC-NEXT:  }) {seeds = [1 : i64, 2 : i64], dims = [#algebra.dim<64>, #algebra.dim<min(M, 4) * (M mod 8)>], facts = [#algebra.fact<s | K>, #algebra.fact<L >= M + 1>, #algebra.fact<M <= L>]} : () -> ()
