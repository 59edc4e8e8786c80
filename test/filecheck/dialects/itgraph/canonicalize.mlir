// RUN: cleave-opt %s -p canonicalize --split-input-file | filecheck %s

// Views and lets that nothing uses go, at every level.

itgraph.plan @unused_views [M, D, N]
    (%x: !algebra.tensor<[M, D], f32>, %n: !algebra.tensor<[M], i32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i = 0 to M) let (a = %n[i], b = %n[i], c = %n[b])
      ins (%t = %x[i, 0] tile [1, D], %u = %x[a, 0] tile [1, D], %gx = %x)
      outs ([i, 0] of !algebra.tensor<[M, D], f32>) {
    %s = itgraph.loop (j = 0 to c) ins (%v = %gx[j, 0] tile [1, D], %w = %gx[a, 0] tile [1, D])
        state (%so = sum %t) {
      itgraph.next %v
    }
    itgraph.yield %s
  }
  itgraph.return %y
}

// CHECK-LABEL: @unused_views
// CHECK:         itgraph.kernel (i = 0 to M)
// CHECK-NEXT:        let (b = %n[i], c = %n[b])
// CHECK-NEXT:        ins (%t = %x[i, 0] tile [1, D], %gx = %x)
// CHECK-NEXT:        outs ([i, 0]
// CHECK-NEXT:      %s = itgraph.loop (j = 0 to c)
// CHECK-NEXT:          ins (%v = %gx[j, 0] tile [1, D])
// CHECK-NEXT:          state (%so = sum %t) {

// -----

// States that nothing uses go; a carry that the loop reads stays.

itgraph.plan @unused_states [M, D]
    (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i = 0 to M) ins (%t = %x[i, 0] tile [1, D])
      outs ([i, 0] of !algebra.tensor<[M, D], f32>) {
    %a, %b, %c, %d = itgraph.loop (j = 0 to D)
        state (%ao = max %t, %bo = carry %t, %co = sum %t, %do = carry %t in rmem<fragment>) {
      %e = algebra.exp %bo
      %f = algebra.add %e, %t
      itgraph.next %f, %f, %e rescale %t, %e
    }
    %unused = itgraph.loop (j = 0 to D) state (%uo = sum %t) {
      itgraph.next %t
    }
    itgraph.yield %c
  }
  itgraph.return %y
}

// CHECK-LABEL: @unused_states
// CHECK:           %b, %c = itgraph.loop (j = 0 to D)
// CHECK-NEXT:          state (%bo = carry %t, %co = sum %t) {
// CHECK-NEXT:        %e = algebra.exp %bo
// CHECK-NEXT:        %f = algebra.add %e, %t
// CHECK-NEXT:        itgraph.next %f, %e rescale %t
// CHECK-NEXT:      }
// CHECK-NEXT:      itgraph.yield %c

// -----

// A view of all of a view is that view, unless it is a copy into a memory of its own.

itgraph.plan @whole_views [M, D]
    (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i = 0 to M) ins (%t = %x[i, 0] tile [1, D])
      outs ([i, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = 0 to D) ins (%u = %t, %v = %t in smem<linear>)
        state (%ao = sum %t) {
      %e = algebra.mul %u, %v
      itgraph.next %e
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// CHECK-LABEL: @whole_views
// CHECK:           itgraph.loop (j = 0 to D)
// CHECK-NEXT:          ins (%v = %t in smem<linear>)
// CHECK-NEXT:          state (%ao = sum %t) {
// CHECK-NEXT:        algebra.mul %t, %v

// -----

// No iteration: the states stay as they begin. One that may happen stays.

itgraph.plan @no_iterations [M, D, N] where [N = 8, D <= N]
    (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i = 0 to M) ins (%t = %x[i, 0] tile [1, D])
      outs ([i, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = N to D) state (%ao = sum %t) {
      itgraph.next %t
    }
    %b = itgraph.loop (j = i to M) state (%bo = sum %a) {
      itgraph.next %t
    }
    itgraph.yield %b
  }
  itgraph.return %y
}

// CHECK-LABEL: @no_iterations
// CHECK-NOT:       j = N to D
// CHECK:           %b = itgraph.loop (j = i to M)
// CHECK-NEXT:          state (%bo = sum %t) {

// -----

// A tail that is never there, and a copy to where the tile already is.

itgraph.plan @tails [M, D, BM, BD] where [D = 64, BD = 16]
    (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i = 0 to M ceildiv BM, j = 0 to D ceildiv BD)
      ins (%t = %x[i * BM, j * BD] tile [BM, BD] in smem<linear>)
      outs ([i * BM, j * BD] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.tail %t dim 1 limit D - j * BD fill 0.0
    %b = itgraph.tail %a dim 0 limit M - i * BM fill 0.0
    %c = itgraph.copy %t to smem<linear>
    %d = itgraph.copy %c to smem<swizzled>
    %e = algebra.add %b, %d
    itgraph.yield %e
  }
  itgraph.return %y
}

// CHECK-LABEL: @tails
// CHECK:           %b = itgraph.tail %t dim 0 limit M - i * BM fill 0.0
// CHECK-NEXT:      %d = itgraph.copy %t to smem<swizzled>
// CHECK-NEXT:      algebra.add %b, %d
