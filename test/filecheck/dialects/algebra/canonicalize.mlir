// RUN: cleave-opt %s -p canonicalize | filecheck %s

// Transpositions compose, and vanish where they do nothing.
algebra.graph @transposes [A, B, C]
    (%x: !algebra.tensor<[A, B, C], f16>)
    -> (!algebra.tensor<[C, A, B], f16>, !algebra.tensor<[A, B, C], f16>) {
  %a = algebra.transpose %x permutation [1, 0, 2]
  %b = algebra.transpose %a permutation [2, 1, 0]
  %c = algebra.transpose %a permutation [1, 0, 2]
  algebra.return %b, %c
}

// CHECK-LABEL: algebra.graph @transposes
// CHECK:         %b = algebra.transpose %x permutation [2, 0, 1] : !algebra.tensor<[C, A, B], f16>
// CHECK-NEXT:    algebra.return %b, %x

// Of reshapes the last one counts, if it changes anything.
algebra.graph @reshapes [A, B, C]
    (%x: !algebra.tensor<[A * B, C], f16>)
    -> (!algebra.tensor<[B, A, C], f16>, !algebra.tensor<[A * B, C], f16>) {
  %a = algebra.reshape %x to [A, B, C]
  %b = algebra.reshape %a to [B, A, C]
  %c = algebra.reshape %a to [B * A, C]
  algebra.return %b, %c
}

// CHECK-LABEL: algebra.graph @reshapes
// CHECK:         %b = algebra.reshape %x to [B, A, C] : !algebra.tensor<[B, A, C], f16>
// CHECK-NEXT:    algebra.return %b, %x

// A matmul reads its operands either way. The order of batch dims is none of its business.
algebra.graph @matmuls [B, M, K, N]
    (%x: !algebra.tensor<[B, K, M], f16>, %y: !algebra.tensor<[B, N, K], f16>,
     %z: !algebra.tensor<[K, B, N], f16>)
    -> (!algebra.tensor<[B, M, N], f32>, !algebra.tensor<[B, M, N], f32>, !algebra.tensor<[B, M, N], f32>) {
  %xt = algebra.transpose %x permutation [0, 2, 1]
  %yt = algebra.transpose %y permutation [0, 2, 1]
  %zt = algebra.transpose %z permutation [1, 0, 2]
  %both = algebra.matmul %xt, %yt
  %flagged = algebra.matmul %xt, %yt precision tf32
  %batch = algebra.matmul %x, %zt transpose_lhs
  algebra.return %both, %flagged, %batch
}

// CHECK-LABEL: algebra.graph @matmuls
// CHECK:         %zt = algebra.transpose %z permutation [1, 0, 2] : !algebra.tensor<[B, K, N], f16>
// CHECK-NEXT:    %both = algebra.matmul %x, %y transpose_lhs transpose_rhs : !algebra.tensor<[B, M, N], f32>
// CHECK-NEXT:    %flagged = algebra.matmul %x, %y transpose_lhs transpose_rhs precision tf32 : !algebra.tensor<[B, M, N], f32>
// CHECK-NEXT:    %batch = algebra.matmul %x, %zt transpose_lhs : !algebra.tensor<[B, M, N], f32>
// CHECK-NEXT:    algebra.return %both, %flagged, %batch

// Transposed twice is not transposed.
algebra.graph @flags [M, K, N]
    (%x: !algebra.tensor<[M, K], f16>, %y: !algebra.tensor<[K, N], f16>)
    -> (!algebra.tensor<[M, N], f32>) {
  %xt = algebra.transpose %x permutation [1, 0]
  %yt = algebra.transpose %y permutation [1, 0]
  %o = algebra.matmul %xt, %yt transpose_lhs transpose_rhs
  algebra.return %o
}

// CHECK-LABEL: algebra.graph @flags
// CHECK:         %o = algebra.matmul %x, %y : !algebra.tensor<[M, N], f32>

// A cast to the type that a value has goes; one that rounds stays, also in front of another.
algebra.graph @casts [M]
    (%x: !algebra.tensor<[M], f32>)
    -> (!algebra.tensor<[M], f32>, !algebra.tensor<[M], f32>) {
  %same = algebra.cast %x to f32
  %narrow = algebra.cast %x to f16
  %wide = algebra.cast %narrow to f32
  %unused = algebra.exp %x
  algebra.return %same, %wide
}

// CHECK-LABEL: algebra.graph @casts
// CHECK:         %narrow = algebra.cast %x to f16 : !algebra.tensor<[M], f16>
// CHECK-NEXT:    %wide = algebra.cast %narrow to f32 : !algebra.tensor<[M], f32>
// CHECK-NEXT:    algebra.return %x, %wide
