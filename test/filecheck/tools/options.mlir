// RUN: not cleave-opt %s -p 'superoptimize{graphs=0}' 2>&1 | filecheck %s --check-prefix=GRAPHS
// RUN: not cleave-opt %s -p 'superoptimize{values=-1}' 2>&1 | filecheck %s --check-prefix=VALUES
// RUN: not cleave-opt %s -p 'superoptimize{seed=-1}' 2>&1 | filecheck %s --check-prefix=SEED
// RUN: not cleave-opt %s -p 'superoptimize{seconds=soon}' 2>&1 | filecheck %s --check-prefix=SECONDS
// RUN: not cleave-opt %s -p 'superoptimize{extra=1 extra=2}' 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not cleave-opt %s -p 'specialize{counts=1}' 2>&1 | filecheck %s --check-prefix=COUNTS
// RUN: not cleave-opt %s -p 'select-schedules{top-k=0}' 2>&1 | filecheck %s --check-prefix=TOP
// RUN: not cleave-opt %s -p 'partition-reductions{limit=-1}' 2>&1 | filecheck %s --check-prefix=LIMIT
// RUN: not cleave-opt %s -p 'plan-memory{threads=7}' 2>&1 | filecheck %s --check-prefix=THREADS
// RUN: not cleave-opt %s -p 'schedule-blocks{tile=4}' 2>&1 | filecheck %s --check-prefix=TILE
// RUN: cleave-opt %s -p 'superoptimize{seconds=1}' | filecheck %s

// GRAPHS:  error: pass 'superoptimize': option graphs is 0; it takes a whole number of at least 1
// VALUES:  error: pass 'superoptimize': option values is -1; it takes a whole number of at least 1
// SEED:    error: pass 'superoptimize': option seed is -1; it takes a whole number from 0 to 4294967295
// SECONDS: error: pass 'superoptimize': option seconds is 'soon'; it takes a number of at least 0
// TWICE:   error: pass 'superoptimize': option extra is given twice
// COUNTS:  error: pass 'specialize': option counts is 1; it takes whole numbers of at least 2
// TOP:     error: pass 'select-schedules': option top-k is 0; it takes a whole number of at least 1
// LIMIT:   error: pass 'partition-reductions': option limit is -1; it takes a whole number of at least 0
// THREADS: error: pass 'plan-memory': option threads is 7; it takes a whole number from 32 to 1024 that 32 divides
// TILE:    error: pass 'schedule-blocks': option tile is 4; it takes a text

// CHECK: algebra.graph @g_1
algebra.graph @g [M] (%x: !algebra.tensor<[M], f32>) -> (!algebra.tensor<[M], f32>) {
  %y = algebra.exp %x
  algebra.return %y
}
