// RUN: cleave-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// One rule a chunk, and one CHECK a chunk: a chunk that is accepted fails its CHECK.

// Plans.

// CHECK: 'itgraph.plan' op: @p: type !algebra.tensor<[M, E], f32> uses undeclared symbol 'E' (declared: M, D, BM)
itgraph.plan @p [M, D, BM] (%y: !algebra.tensor<[M, E], f32>) -> (!algebra.tensor<[M, D], f32>) {
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.plan' op: @p: declares a symbol twice: M, D, M
itgraph.plan @p [M, D, M] (%y: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.plan' op: @p: {{.*M = 4.*M = 8|.*M = 8.*M = 4}}
itgraph.plan @p [M, D, BM] where [M = 4, M = 8] (%y: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.plan' op: @p: fact `s | M` uses undeclared symbol 's'
itgraph.plan @p [M, D, BM] where [s | M] (%y: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.plan' op: @p: 'algebra.exp' op stands between kernels, where only views such as algebra.reshape and algebra.transpose may
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = algebra.exp %x
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.plan' op: @p: 'algebra.split' op uses undeclared symbol 'E' (declared: M, D, BM)
itgraph.plan @p [M, D, BM] where [D = 64] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = algebra.split %x dim 1 count E
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.plan' op: @p: declares 1 result but returns 2
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  itgraph.return %x, %x
}

// -----

// CHECK: 'itgraph.plan' op: @p: declares result 0 as !algebra.tensor<[M, D], f16> but returns !algebra.tensor<[M, D], f32>
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f16>) {
  itgraph.return %x
}

// -----

// Nesting.

// CHECK: 'itgraph.loop' expects parent op to be one of 'itgraph.kernel', 'itgraph.loop'
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.loop (j = 0 to D) state (%s = sum %x) {
    itgraph.next %x
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' expects parent op 'itgraph.plan'
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %z = itgraph.kernel (h = 0 to D) ins (%u = %t) outs ([0, 0] of !algebra.tensor<[BM, D], f32>) {
      itgraph.yield %u
    }
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.return' expects parent op 'itgraph.plan'
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.return %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.next' expects parent op 'itgraph.loop'
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.next %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.yield' expects parent op 'itgraph.kernel'
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = 0 to D) ins (%s = %t[0, j] tile [BM, 1]) state (%ao = sum %t) {
      itgraph.yield %t
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: body does not end in itgraph.yield
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    llvm.unreachable
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.loop' op: body does not end in itgraph.next
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = 0 to D) ins (%s = %t[0, j] tile [BM, 1]) state (%ao = sum %t) {
      llvm.unreachable
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: holds 'arith.constant' op, which is neither an operator nor a loop
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %c = arith.constant 1 : i32
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: 'algebra.exp' op uses %x of the plan, but a kernel reads tensors through its ins
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %e = algebra.exp %x
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// Names.

// CHECK: 'itgraph.kernel' op: view %t uses 'i_N' in i_N * BM, which is not in scope (in scope: M, D, BM, i_M)
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_N * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.loop' op: 'i_M' shadows a name around it
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (i_M = 0 to D) state (%ao = sum %t) {
      itgraph.next %t
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: 'D' shadows a name around it
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (D = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: 'i_M' shadows a name of its own
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM, i_M = 0 to D) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: 'M' shadows a name around it
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>, %n: !algebra.tensor<[M], i32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) let (M = %n[i_M]) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.loop' op: bound N of j uses 'N' in N, which is not in scope (in scope: M, D, BM, i_M)
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = 0 to N) state (%ao = sum %t) {
      itgraph.next %t
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: bound i_M + 1 of h uses 'i_M', which changes from iteration to iteration
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM, h = 0 to i_M + 1) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.loop' op: bound n of j uses 'n', which changes from iteration to iteration
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>, %n: !algebra.tensor<[M], i32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D], %g = %n)
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = 0 to n) let (n = %g[j]) state (%ao = sum %t) {
      itgraph.next %t
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: let a uses 'b' in b, which is not in scope (in scope: M, D, BM, i_M)
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>, %n: !algebra.tensor<[M], i32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) let (a = %n[b], b = %n[i_M]) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: 'itgraph.tail' op uses 'j' in D - j, which is not in scope (in scope: M, D, BM, i_M)
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %z = itgraph.tail %t dim 1 limit D - j fill 0.0
    itgraph.yield %z
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: result of 'algebra.constant' op uses 'N' in N, which is not in scope
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %z = algebra.constant 0 : !algebra.tensor<[N], f32>
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: output 0 uses 'j' in j * BM, which is not in scope
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([j * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// Views and lets.

// CHECK: 'itgraph.kernel' op: view %t has a tmap of rank 1, but !algebra.tensor<[M, D], f32> has rank 2
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM] tile [BM])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: tmap has 1 offset but a tile of rank 2
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: view %t has tile dim 1 i_M + 1, which changes with 'i_M'; tiles have one shape, so only symbols of the plan may be in it
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, i_M + 1])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: view %t gathers dim 0 by !algebra.tensor<[D], i32>, but the index vector of BM rows has rank 1, that length and i32 or i64 elements
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>, %n: !algebra.tensor<[D], i32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[gather %n, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: view %t gathers dim 0 by !algebra.tensor<[D], f32>, but the index vector
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>, %n: !algebra.tensor<[D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[gather %n, 0] tile [D, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: let a reads !algebra.tensor<[D], f32>, but a table has i32 or i64 elements
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>, %n: !algebra.tensor<[D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) let (a = %n[i_M]) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: let a has 2 indices for !algebra.tensor<[D], i32> of rank 1
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>, %n: !algebra.tensor<[D], i32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) let (a = %n[i_M, 0]) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: %n is i32, not an algebra tensor
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>, %n: i32) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) let (a = %n[i_M]) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: %z is not defined here
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %z[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: a tile in rmem is not swizzled but linear or fragment
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D] in rmem<swizzled>)
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: expected a memory: gmem, smem, rmem
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D] in l2<linear>)
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// Outputs.

// CHECK: 'itgraph.kernel' op: has 1 out but yields 2 tiles
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t, %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: output 0 is !algebra.tensor<[M, D], f32> but !algebra.tensor<[BM, D], f16> is yielded
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %h = algebra.cast %t to f16
    itgraph.yield %h
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: output 0 has 1 offset and a tile of rank 2, but !algebra.tensor<[M, D], f32> has rank 2
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: output 0: dim 1 (D) is not iterated, so its offset is 0 and its tile holds it, but the offset is 0 and the tile 32
itgraph.plan @p [M, D, BM] where [D = 64] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, 32])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: output 0: dim 1 (D) is not iterated, so its offset is 0 and its tile holds it, but the offset is 1 and the tile D
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 1] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: output 0: dim 0 (M) has offset i_M * BM + 1, but tiles of BM are disjoint and adjacent at one iterator times the tile, i_M * BM
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM + 1, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: output 0: dim 0 (M) has offset i_M * BM, but tiles of 2 are disjoint and adjacent at one iterator times the tile, i_M * 2
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [2, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: output 0: dim 0 (M) is covered by tiles of BM if i_M goes from 0 to M ceildiv BM, but it goes from 0 to M floordiv BM
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M floordiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: output 0: dim 0 (M) is covered by tiles of BM if i_M goes from 0 to M ceildiv BM, but it goes from 1 to M ceildiv BM
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 1 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: output 0 is written once for each h, because its offsets [i_M * BM, 0] do not use it
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM, h = 0 to D) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: output 0: i_M moves dims 0 and 1 together, so only tiles on a diagonal are written
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, M], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, BM])
      outs ([i_M * BM, i_M * BM] of !algebra.tensor<[M, M], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: output 0: dim 0 (M) has offset z, but tiles of 2 are disjoint and adjacent at one iterator times the tile
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (z = 0 to M) ins (%t = %x[z, 0] tile [2, D])
      outs ([z, 0] of !algebra.tensor<[M, D], f32>) {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: threads is 0, but it is at least 1
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) attributes {threads = 0 : i64} {
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// States.

// CHECK: 'itgraph.loop' op: has 2 iterators, but a loop has one
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = 0 to D, k = 0 to D) state (%ao = sum %t) {
      itgraph.next %t
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.loop' op: has no state, so it computes nothing
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    "itgraph.loop"() <{iterators = [#itgraph.range<j = 0 to D>], lookups = [], tmaps = [], updates = [], operandSegmentSizes = array<i32: 0, 0, 0, 0>}> ({
      "itgraph.next"() <{rescaled = [], operandSegmentSizes = array<i32: 0, 0>}> : () -> ()
    }) : () -> ()
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.loop' op: sum state %ao is read in its loop, where only a carry may be
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = 0 to D) ins (%s = %t[0, j] tile [BM, 1]) state (%ao = sum %t) {
      itgraph.next %ao
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.loop' op: tiles state %ao is read in its loop, where only a carry may be
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = 0 to D) ins (%s = %t[0, j] tile [BM, 1]) state (%ao = tiles %t[0, j * D]) {
      %e = algebra.exp %ao
      itgraph.next %e
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.loop' op: has 1 state but itgraph.next gives 2 values
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = 0 to D) ins (%s = %t[0, j] tile [BM, 1]) state (%ao = sum %t) {
      itgraph.next %t, %t
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.loop' op: sum state %ao is !algebra.tensor<[BM, D], f32>, but itgraph.next gives !algebra.tensor<[BM, 1], f32>
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = 0 to D) ins (%s = %t[0, j] tile [BM, 1]) state (%ao = sum %t) {
      itgraph.next %s
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.loop' op: carry state %ao is given a rescale, which only a sum may be
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = 0 to D) ins (%s = %t[0, j] tile [BM, 1]) state (%ao = carry %t) {
      itgraph.next %t rescale %s
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.loop' op: sum state %ao is !algebra.tensor<[BM, D], f32>, but its rescale !algebra.tensor<[1, BM], f32> is not a float tile of the same rank whose dims are equal or 1
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = 0 to D) ins (%s = %t[0, j] tile [BM, 1]) state (%ao = sum %t) {
      %r = algebra.transpose %s permutation [1, 0]
      itgraph.next %t rescale %r
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.loop' op: tiles state %ao is !algebra.tensor<[BM, D], f32>, but !algebra.tensor<[BM, 1], f16> is no tile of it
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = 0 to D) ins (%s = %t[0, j] tile [BM, 1]) state (%ao = tiles %t[0, j]) {
      %h = algebra.cast %s to f16
      itgraph.next %h
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.loop' op: tiles state %ao has 1 offset, but !algebra.tensor<[BM, D], f32> has rank 2
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = 0 to D) ins (%s = %t[0, j] tile [BM, 1]) state (%ao = tiles %t[j]) {
      itgraph.next %s
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.loop' op: tiles state %ao uses 'k' in k, which is not in scope
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = 0 to D) ins (%s = %t[0, j] tile [BM, 1]) state (%ao = tiles %t[0, k]) {
      itgraph.next %s
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: expected a state kind: carry, sum, max, tiles
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = itgraph.loop (j = 0 to D) ins (%s = %t[0, j] tile [BM, 1]) state (%ao = min %t) {
      itgraph.next %t
    }
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.tail' op: dim 2 is out of range for an operand of rank 2
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %z = itgraph.tail %t dim 2 limit D fill 0.0
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.copy' op: says twice where its result lives
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %z = itgraph.copy %t to smem<linear> : !algebra.tensor<[BM, D], f32> in rmem<linear>
    itgraph.yield %t
  }
  itgraph.return %y
}

// -----

// What only the generic form can say.

// CHECK: 'itgraph.kernel' op: view %t is !algebra.tensor<[BM, M], f32>, but its tile is !algebra.tensor<[BM, D], f32>
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = "itgraph.kernel"(%x) <{iterators = [#itgraph.range<i_M = 0 to M ceildiv BM>], lookups = [], tmaps = [#itgraph.tmap<[i_M * BM, 0] tile [BM, D]>], output_offsets = [[#algebra.dim<i_M * BM>, #algebra.dim<0>]], operandSegmentSizes = array<i32: 1, 0, 0>}> ({
  ^bb0(%t: !algebra.tensor<[BM, M], f32>):
    itgraph.yield %t
  }) : (!algebra.tensor<[M, D], f32>) -> !algebra.tensor<[M, D], f32>
  itgraph.return %y
}

// -----

// CHECK: tmap: dim 1 of the tile is 0, not >= 1
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = "itgraph.kernel"(%x) <{iterators = [#itgraph.range<i_M = 0 to M ceildiv BM>], lookups = [], tmaps = [#itgraph.tmap<[i_M * BM, 0] tile [BM, 0]>], output_offsets = [[#algebra.dim<i_M * BM>, #algebra.dim<0>]], operandSegmentSizes = array<i32: 1, 0, 0>}> ({
  ^bb0(%t: !algebra.tensor<[BM, D], f32>):
    itgraph.yield %t
  }) : (!algebra.tensor<[M, D], f32>) -> !algebra.tensor<[M, D], f32>
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: has 1 view but 2 tmaps
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = "itgraph.kernel"(%x) <{iterators = [#itgraph.range<i_M = 0 to M ceildiv BM>], lookups = [], tmaps = [#itgraph.tmap<[i_M * BM, 0] tile [BM, D]>, #itgraph.tmap<[i_M * BM, 0] tile [BM, D]>], output_offsets = [[#algebra.dim<i_M * BM>, #algebra.dim<0>]], operandSegmentSizes = array<i32: 1, 0, 0>}> ({
  ^bb0(%t: !algebra.tensor<[BM, D], f32>):
    itgraph.yield %t
  }) : (!algebra.tensor<[M, D], f32>) -> !algebra.tensor<[M, D], f32>
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: gathers 1 dim but has 0 index vectors
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = "itgraph.kernel"(%x) <{iterators = [#itgraph.range<i_M = 0 to M ceildiv BM>], lookups = [], tmaps = [#itgraph.tmap<[gather, 0] tile [BM, D]>], output_offsets = [[#algebra.dim<i_M * BM>, #algebra.dim<0>]], operandSegmentSizes = array<i32: 1, 0, 0>}> ({
  ^bb0(%t: !algebra.tensor<[BM, D], f32>):
    itgraph.yield %t
  }) : (!algebra.tensor<[M, D], f32>) -> !algebra.tensor<[M, D], f32>
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: body has 2 arguments, but views and states are 1 together
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = "itgraph.kernel"(%x) <{iterators = [#itgraph.range<i_M = 0 to M ceildiv BM>], lookups = [], tmaps = [#itgraph.tmap<[i_M * BM, 0] tile [BM, D]>], output_offsets = [[#algebra.dim<i_M * BM>, #algebra.dim<0>]], operandSegmentSizes = array<i32: 1, 0, 0>}> ({
  ^bb0(%t: !algebra.tensor<[BM, D], f32>, %u: !algebra.tensor<[BM, D], f32>):
    itgraph.yield %t
  }) : (!algebra.tensor<[M, D], f32>) -> !algebra.tensor<[M, D], f32>
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: places 2, but views and states are 1 together
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = "itgraph.kernel"(%x) <{iterators = [#itgraph.range<i_M = 0 to M ceildiv BM>], lookups = [], tmaps = [#itgraph.tmap<[i_M * BM, 0] tile [BM, D]>], placement = [unit, unit], output_offsets = [[#algebra.dim<i_M * BM>, #algebra.dim<0>]], operandSegmentSizes = array<i32: 1, 0, 0>}> ({
  ^bb0(%t: !algebra.tensor<[BM, D], f32>):
    itgraph.yield %t
  }) : (!algebra.tensor<[M, D], f32>) -> !algebra.tensor<[M, D], f32>
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.kernel' op: has 0 lets but 1 table
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = "itgraph.kernel"(%x, %x) <{iterators = [#itgraph.range<i_M = 0 to M ceildiv BM>], lookups = [], tmaps = [#itgraph.tmap<[i_M * BM, 0] tile [BM, D]>], output_offsets = [[#algebra.dim<i_M * BM>, #algebra.dim<0>]], operandSegmentSizes = array<i32: 1, 0, 1>}> ({
  ^bb0(%t: !algebra.tensor<[BM, D], f32>):
    itgraph.yield %t
  }) : (!algebra.tensor<[M, D], f32>, !algebra.tensor<[M, D], f32>) -> !algebra.tensor<[M, D], f32>
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.loop' op: sum state %s begins as !algebra.tensor<[BM, D], f32>, but is !algebra.tensor<[BM, 1], f32> in the loop and !algebra.tensor<[BM, D], f32> after it
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = "itgraph.loop"(%t) <{iterators = [#itgraph.range<j = 0 to D>], lookups = [], tmaps = [], updates = [#itgraph.state<sum>], operandSegmentSizes = array<i32: 1, 0, 0, 0>}> ({
    ^bb0(%s: !algebra.tensor<[BM, 1], f32>):
      itgraph.next %t
    }) : (!algebra.tensor<[BM, D], f32>) -> !algebra.tensor<[BM, D], f32>
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.loop' op: has 2 states, 1 initial value and 1 result
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = "itgraph.loop"(%t) <{iterators = [#itgraph.range<j = 0 to D>], lookups = [], tmaps = [], updates = [#itgraph.state<sum>, #itgraph.state<sum>], operandSegmentSizes = array<i32: 1, 0, 0, 0>}> ({
    ^bb0(%s: !algebra.tensor<[BM, D], f32>):
      itgraph.next %t
    }) : (!algebra.tensor<[BM, D], f32>) -> !algebra.tensor<[BM, D], f32>
    itgraph.yield %a
  }
  itgraph.return %y
}

// -----

// CHECK: 'itgraph.next' op: rescaled positions [1] do not fit 1 value and 1 rescale
itgraph.plan @p [M, D, BM] (%x: !algebra.tensor<[M, D], f32>) -> (!algebra.tensor<[M, D], f32>) {
  %y = itgraph.kernel (i_M = 0 to M ceildiv BM) ins (%t = %x[i_M * BM, 0] tile [BM, D])
      outs ([i_M * BM, 0] of !algebra.tensor<[M, D], f32>) {
    %a = "itgraph.loop"(%t) <{iterators = [#itgraph.range<j = 0 to D>], lookups = [], tmaps = [], updates = [#itgraph.state<sum>], operandSegmentSizes = array<i32: 1, 0, 0, 0>}> ({
    ^bb0(%s: !algebra.tensor<[BM, D], f32>):
      "itgraph.next"(%t, %t) <{rescaled = [1 : i64], operandSegmentSizes = array<i32: 1, 1>}> : (!algebra.tensor<[BM, D], f32>, !algebra.tensor<[BM, D], f32>) -> ()
    }) : (!algebra.tensor<[BM, D], f32>) -> !algebra.tensor<[BM, D], f32>
    itgraph.yield %a
  }
  itgraph.return %y
}
