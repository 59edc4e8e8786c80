// RUN: XDSL_ROUNDTRIP
// RUN: XDSL_GENERIC_ROUNDTRIP

// The paper's Fig. 7 with a running maximum, and a causal mask and bound.
itgraph.plan @attention [M, L, D, BM, BL] where [M = 4096, L = 4096, D = 64, BM = 128, BL = 64]
    (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>, %v: !algebra.tensor<[L, D], f16>)
    -> (!algebra.tensor<[M, D], f16>) {
  %o = itgraph.kernel (i_M = 0 to M ceildiv BM)
      ins (%tq = %q[i_M * BM, 0] tile [BM, D], %gk = %k, %gv = %v)
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f16>) {
    %m0 = algebra.constant -inf : !algebra.tensor<[BM, 1], f32>
    %m1 = algebra.constant -inf : !algebra.tensor<[BM, BL], f32>
    %l0 = algebra.constant 0 : !algebra.tensor<[BM, 1], f32>
    %a0 = algebra.constant 0 : !algebra.tensor<[BM, D], f32>
    %m, %l, %a = itgraph.loop (i_L = 0 to min(L, (i_M + 1) * BM + L - M) ceildiv BL)
        ins (%tk = %gk[i_L * BL, 0] tile [BL, D], %tv = %gv[i_L * BL, 0] tile [BL, D])
        state (%mo = carry %m0, %lo = sum %l0, %ao = sum %a0) {
      %s = algebra.matmul %tq, %tk transpose_rhs
      %seen = algebra.causal diagonal L - M + i_M * BM - i_L * BL : !algebra.tensor<[BM, BL], i1>
      %c = algebra.select %seen, %s, %m1
      %t = itgraph.tail %c dim 1 limit L - i_L * BL fill -inf
      %rm = algebra.reduce_max %t dim 1
      %mn = algebra.max %mo, %rm
      %d = algebra.sub %t, %mn
      %p = algebra.exp %d
      %e = algebra.sub %mo, %mn
      %w = algebra.exp %e
      %ps = algebra.reduce_sum %p dim 1
      %ph = algebra.cast %p to f16
      %pv = algebra.matmul %ph, %tv
      itgraph.next %mn, %ps rescale %w, %pv rescale %w
    }
    %r = algebra.div %a, %l
    %rh = algebra.cast %r to f16
    itgraph.yield %rh
  }
  itgraph.return %o
}

// CHECK-LABEL: itgraph.plan @attention [M, L, D, BM, BL] where [M = 4096, L = 4096, D = 64, BM = 128, BL = 64]
// CHECK-NEXT:      (%q: !algebra.tensor<[M, D], f16>, %k: !algebra.tensor<[L, D], f16>, %v: !algebra.tensor<[L, D], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M, D], f16>) {
// CHECK-NEXT:    %o = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tq = %q[i_M * BM, 0] tile [BM, D], %gk = %k, %gv = %v)
// CHECK-NEXT:        outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f16>) {
// CHECK-NEXT:      %m0 = algebra.constant -inf : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %m1 = algebra.constant -inf : !algebra.tensor<[BM, BL], f32>
// CHECK-NEXT:      %l0 = algebra.constant 0 : !algebra.tensor<[BM, 1], f32>
// CHECK-NEXT:      %a0 = algebra.constant 0 : !algebra.tensor<[BM, D], f32>
// CHECK-NEXT:      %m, %l, %a = itgraph.loop (i_L = 0 to min(L, i_M * BM + BM + L - M) ceildiv BL)
// CHECK-NEXT:          ins (%tk = %gk[i_L * BL, 0] tile [BL, D], %tv = %gv[i_L * BL, 0] tile [BL, D])
// CHECK-NEXT:          state (%mo = carry %m0, %lo = sum %l0, %ao = sum %a0) {
// CHECK-NEXT:        %s = algebra.matmul %tq, %tk transpose_rhs : !algebra.tensor<[BM, BL], f32>
// CHECK-NEXT:        %seen = algebra.causal diagonal i_M * BM - i_L * BL + L - M : !algebra.tensor<[BM, BL], i1>
// CHECK-NEXT:        %c = algebra.select %seen, %s, %m1 : !algebra.tensor<[BM, BL], f32>
// CHECK-NEXT:        %t = itgraph.tail %c dim 1 limit L - i_L * BL fill -inf : !algebra.tensor<[BM, BL], f32>
// CHECK:             itgraph.next %mn, %ps rescale %w, %pv rescale %w
// CHECK-NEXT:      }
// CHECK-NEXT:      %r = algebra.div %a, %l : !algebra.tensor<[BM, D], f32>
// CHECK-NEXT:      %rh = algebra.cast %r to f16 : !algebra.tensor<[BM, D], f16>
// CHECK-NEXT:      itgraph.yield %rh
// CHECK-NEXT:    }
// CHECK-NEXT:    itgraph.return %o
// CHECK-NEXT:  }

// CHECK-GENERIC:      iterators = [#itgraph.range<i_M = 0 to M ceildiv BM>]
// CHECK-GENERIC-SAME: tmaps = [#itgraph.tmap<[i_M * BM, 0] tile [BM, D]>, #itgraph.tmap<[0, 0] tile [L, D]>, #itgraph.tmap<[0, 0] tile [L, D]>]
// CHECK-GENERIC:      updates = [#itgraph.state<carry>, #itgraph.state<sum>, #itgraph.state<sum>]
// CHECK-GENERIC:      "itgraph.next"
// CHECK-GENERIC-SAME: rescaled = [1 : i64, 2 : i64]

// -----

// A split reduction that does not divide evenly, and the kernel that combines its parts.
itgraph.plan @split [H, M, L, D, S, C, BM, BL] where [L = 4099, S = 8, C = 576, BL | C]
    (%q: !algebra.tensor<[H, M, D], f16>, %k: !algebra.tensor<[H, L, D], f16>, %v: !algebra.tensor<[H, L, D], f16>)
    -> (!algebra.tensor<[H, M, D], f16>) {
  %pm, %pl, %pa = itgraph.kernel (z = 0 to S, h = 0 to H, i_M = 0 to M ceildiv BM)
      ins (%tq = %q[h, i_M * BM, 0] tile [1, BM, D], %gk = %k[h, 0, 0] tile [1, L, D], %gv = %v[h, 0, 0] tile [1, L, D])
      outs ([z, h, i_M * BM, 0] of !algebra.tensor<[S, H, M, 1], f32>,
            [z, h, i_M * BM, 0] of !algebra.tensor<[S, H, M, 1], f32>,
            [z, h, i_M * BM, 0] of !algebra.tensor<[S, H, M, D], f32>) {
    %m0 = algebra.constant -inf : !algebra.tensor<[1, BM, 1], f32>
    %l0 = algebra.constant 0 : !algebra.tensor<[1, BM, 1], f32>
    %a0 = algebra.constant 0 : !algebra.tensor<[1, BM, D], f32>
    %m, %l, %a = itgraph.loop (i_L = z * C ceildiv BL to min(L, (z + 1) * C) ceildiv BL)
        ins (%tk = %gk[0, i_L * BL, 0] tile [1, BL, D], %tv = %gv[0, i_L * BL, 0] tile [1, BL, D])
        state (%mo = carry %m0, %lo = sum %l0, %ao = sum %a0) {
      %s = algebra.matmul %tq, %tk transpose_rhs
      %t = itgraph.tail %s dim 2 limit L - i_L * BL fill -inf
      %rm = algebra.reduce_max %t dim 2
      %mn = algebra.max %mo, %rm
      %d = algebra.sub %t, %mn
      %p = algebra.exp %d
      %e = algebra.sub %mo, %mn
      %w = algebra.exp %e
      %ps = algebra.reduce_sum %p dim 2
      %ph = algebra.cast %p to f16
      %pv = algebra.matmul %ph, %tv
      itgraph.next %mn, %ps rescale %w, %pv rescale %w
    }
    %m4 = algebra.reshape %m to [1, 1, BM, 1]
    %l4 = algebra.reshape %l to [1, 1, BM, 1]
    %a4 = algebra.reshape %a to [1, 1, BM, D]
    itgraph.yield %m4, %l4, %a4
  }
  %o = itgraph.kernel (h = 0 to H, i_M = 0 to M ceildiv BM)
      ins (%tm = %pm[0, h, i_M * BM, 0] tile [S, 1, BM, 1], %tl = %pl[0, h, i_M * BM, 0] tile [S, 1, BM, 1],
           %ta = %pa[0, h, i_M * BM, 0] tile [S, 1, BM, D])
      outs ([h, i_M * BM, 0] of !algebra.tensor<[H, M, D], f16>) {
    %mm = algebra.reduce_max %tm dim 0
    %d = algebra.sub %tm, %mm
    %w = algebra.exp %d
    %lw = algebra.mul %tl, %w
    %aw = algebra.mul %ta, %w
    %ls = algebra.reduce_sum %lw dim 0
    %as = algebra.reduce_sum %aw dim 0
    %r = algebra.div %as, %ls
    %r3 = algebra.reshape %r to [1, BM, D]
    %rh = algebra.cast %r3 to f16
    itgraph.yield %rh
  }
  itgraph.return %o
}

// CHECK-LABEL: itgraph.plan @split [H, M, L, D, S, C, BM, BL] where [L = 4099, S = 8, C = 576, BL | C]
// CHECK:         %pm, %pl, %pa = itgraph.kernel (z = 0 to S, h = 0 to H, i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tq = %q[h, i_M * BM, 0] tile [1, BM, D], %gk = %k[h, 0, 0] tile [1, L, D], %gv = %v[h, 0, 0] tile [1, L, D])
// CHECK-NEXT:        outs ([z, h, i_M * BM, 0] of !algebra.tensor<[S, H, M, 1], f32>, [z, h, i_M * BM, 0] of !algebra.tensor<[S, H, M, 1], f32>, [z, h, i_M * BM, 0] of !algebra.tensor<[S, H, M, D], f32>) {
// CHECK:           %m, %l, %a = itgraph.loop (i_L = z * C ceildiv BL to min(L, z * C + C) ceildiv BL)
// CHECK:           itgraph.yield %m4, %l4, %a4
// CHECK:         %o = itgraph.kernel (h = 0 to H, i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%tm = %pm[0, h, i_M * BM, 0] tile [S, 1, BM, 1], %tl = %pl[0, h, i_M * BM, 0] tile [S, 1, BM, 1], %ta = %pa[0, h, i_M * BM, 0] tile [S, 1, BM, D])

// CHECK-GENERIC: "itgraph.plan"() <{sym_name = "split", symbols = ["H", "M", "L", "D", "S", "C", "BM", "BL"], where = [#algebra.fact<L = 4099>, #algebra.fact<S = 8>, #algebra.fact<C = 576>, #algebra.fact<BL | C>], outputs = [!algebra.tensor<[H, M, D], f16>]}>

// -----

// Paged decoding: loop bounds and rows come from tensors, and an inner loop continues the
// accumulators of the outer one.
itgraph.plan @paged [B, HK, G, D, NP, NI, BL] where [BL = 64]
    (%q: !algebra.tensor<[B, HK, G, D], bf16>, %k: !algebra.tensor<[NP, HK, D], bf16>, %v: !algebra.tensor<[NP, HK, D], bf16>,
     %indptr: !algebra.tensor<[B + 1], i32>, %pages: !algebra.tensor<[NI], i32>)
    -> (!algebra.tensor<[B, HK, G, D], bf16>) {
  %o = itgraph.kernel (b = 0 to B, h = 0 to HK) let (lo = %indptr[b], hi = %indptr[b + 1])
      ins (%tq = %q[b, h, 0, 0] tile [1, 1, G, D], %gk = %k, %gv = %v, %gp = %pages)
      outs ([b, h, 0, 0] of !algebra.tensor<[B, HK, G, D], bf16>) {
    %q2 = algebra.reshape %tq to [G, D]
    %m0 = algebra.constant -1.0e30 : !algebra.tensor<[G, 1], f32>
    %l0 = algebra.constant 0 : !algebra.tensor<[G, 1], f32>
    %a0 = algebra.constant 0 : !algebra.tensor<[G, D], f32>
    %m, %l, %a = itgraph.loop (j = 0 to (hi - lo) ceildiv BL) ins (%ti = %gp[lo + j * BL] tile [BL])
        state (%mj = carry %m0, %lj = carry %l0, %aj = carry %a0) {
      %mu, %lu, %au = itgraph.loop (u = 0 to 1)
          ins (%tk = %gk[gather %ti, h, 0] tile [BL, 1, D], %tv = %gv[gather %ti, h, 0] tile [BL, 1, D])
          state (%mo = carry %mj, %lo = sum %lj, %ao = sum %aj) {
        %k2 = algebra.reshape %tk to [BL, D]
        %v2 = algebra.reshape %tv to [BL, D]
        %s = algebra.matmul %q2, %k2 transpose_rhs
        %t = itgraph.tail %s dim 1 limit hi - lo - j * BL fill -inf
        %rm = algebra.reduce_max %t dim 1
        %mn = algebra.max %mo, %rm
        %d = algebra.sub %t, %mn
        %p = algebra.exp %d
        %e = algebra.sub %mo, %mn
        %w = algebra.exp %e
        %ps = algebra.reduce_sum %p dim 1
        %ph = algebra.cast %p to bf16
        %pv = algebra.matmul %ph, %v2
        itgraph.next %mn, %ps rescale %w, %pv rescale %w
      }
      itgraph.next %mu, %lu, %au
    }
    %r = algebra.div %a, %l
    %r4 = algebra.reshape %r to [1, 1, G, D]
    %rh = algebra.cast %r4 to bf16
    itgraph.yield %rh
  }
  itgraph.return %o
}

// CHECK-LABEL: itgraph.plan @paged
// CHECK:         %o = itgraph.kernel (b = 0 to B, h = 0 to HK)
// CHECK-NEXT:        let (lo = %indptr[b], hi = %indptr[b + 1])
// CHECK-NEXT:        ins (%tq = %q[b, h, 0, 0] tile [1, 1, G, D], %gk = %k, %gv = %v, %gp = %pages)
// CHECK:           itgraph.loop (j = 0 to (hi - lo) ceildiv BL)
// CHECK-NEXT:          ins (%ti = %gp[j * BL + lo] tile [BL])
// CHECK-NEXT:          state (%mj = carry %m0, %lj = carry %l0, %aj = carry %a0) {
// CHECK-NEXT:        %mu, %lu, %au = itgraph.loop (u = 0 to 1)
// CHECK-NEXT:            ins (%tk = %gk[gather %ti, h, 0] tile [BL, 1, D], %tv = %gv[gather %ti, h, 0] tile [BL, 1, D])
// CHECK-NEXT:            state (%mo = carry %mj, %lo = sum %lj, %ao = sum %aj) {

// CHECK-GENERIC: lookups = [#itgraph.lookup<lo = [b]>, #itgraph.lookup<hi = [b + 1]>]
// CHECK-GENERIC: tmaps = [#itgraph.tmap<[gather, h, 0] tile [BL, 1, D]>, #itgraph.tmap<[gather, h, 0] tile [BL, 1, D]>]

// -----

// What memory planning writes, views between kernels, and a state of tiles.
itgraph.plan @placed [M, N, BM, BN] where [BM = 128]
    (%x: !algebra.tensor<[N, M], f16>) -> (!algebra.tensor<[M * N], f16>, !algebra.tensor<[N, M], f16>)
    attributes {rank = 1 : i64} {
  %xt = algebra.transpose %x permutation [1, 0]
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM)
      ins (%gx = %xt in gmem, %tx = %xt[i_M * BM, 0] tile [BM, N] in smem<linear>)
      outs ([i_M * BM, 0] of !algebra.tensor<[M, N], f16>)
      attributes {threads = 256 : i64, note = "best", form = "pipelined", stages = 3 : i64, swizzle = 4 : i64} {
    %t0 = algebra.constant 0 : !algebra.tensor<[BM, N], f32>
    %t = itgraph.loop (j = 0 to N ceildiv BN)
        ins (%ts = %gx[i_M * BM, j * BN] tile [BM, BN] in smem<swizzled>, %tw = %tx)
        state (%to = tiles %t0[0, j * BN] in rmem<fragment>)
        attributes {unroll} {
      %e = algebra.exp %ts : !algebra.tensor<[BM, BN], f32> in rmem<fragment>
      itgraph.next %e
    }
    %th = algebra.cast %t to f16
    %tc = itgraph.copy %th to smem<swizzled>
    itgraph.yield %tc
  }
  %z = algebra.reshape %y to [M * N]
  itgraph.return %z, %x
}

// CHECK-LABEL: itgraph.plan @placed
// CHECK-NEXT:      (%x: !algebra.tensor<[N, M], f16>)
// CHECK-NEXT:      -> (!algebra.tensor<[M * N], f16>, !algebra.tensor<[N, M], f16>)
// CHECK-NEXT:      attributes {rank = 1 : i64} {
// CHECK-NEXT:    %xt = algebra.transpose %x permutation [1, 0]
// CHECK-NEXT:    %y = itgraph.kernel (i_M = 0 to M ceildiv BM)
// CHECK-NEXT:        ins (%gx = %xt in gmem, %tx = %xt[i_M * BM, 0] tile [BM, N] in smem<linear>)
// CHECK-NEXT:        outs ([i_M * BM, 0] of !algebra.tensor<[M, N], f16>)
// CHECK-NEXT:        attributes {form = "pipelined", threads = 256 : i64, stages = 3 : i64, swizzle = 4 : i64, note = "best"} {
// CHECK-NEXT:      %t0 = algebra.constant 0
// CHECK-NEXT:      %t = itgraph.loop (j = 0 to N ceildiv BN)
// CHECK-NEXT:          ins (%ts = %gx[i_M * BM, j * BN] tile [BM, BN] in smem<swizzled>, %tw = %tx)
// CHECK-NEXT:          state (%to = tiles %t0[0, j * BN] in rmem<fragment>)
// CHECK-NEXT:          attributes {unroll} {
// CHECK-NEXT:        %e = algebra.exp %ts : !algebra.tensor<[BM, BN], f32> in rmem<fragment>
// CHECK:           %tc = itgraph.copy %th to smem<swizzled> : !algebra.tensor<[BM, N], f16>
// CHECK:         %z = algebra.reshape %y to [M * N] : !algebra.tensor<[M * N], f16>
// CHECK-NEXT:    itgraph.return %z, %x

// CHECK-GENERIC: placement = [#itgraph.memory<gmem, linear>, #itgraph.memory<smem, linear>]
// CHECK-GENERIC: placement = [#itgraph.memory<smem, swizzled>, unit, #itgraph.memory<rmem, fragment>], updates = [#itgraph.state<tiles [0, j * BN]>]

// -----

// One threadblock, whose tile of 64 rows holds the few that there are.
itgraph.plan @one_tile [M, D] where [M <= 64]
    (%x: !algebra.tensor<[M, D], f16>) -> (!algebra.tensor<[M, D], f16>) {
  %y = itgraph.kernel () ins (%t = %x[0, 0] tile [64, D])
      outs ([0, 0] of !algebra.tensor<[M, D], f16>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// CHECK-LABEL: itgraph.plan @one_tile
// CHECK:         %y = itgraph.kernel ()
// CHECK-NEXT:        ins (%t = %x[0, 0] tile [64, D])

// CHECK-GENERIC: iterators = [], lookups = [], tmaps = [#itgraph.tmap<[0, 0] tile [64, D]>]
