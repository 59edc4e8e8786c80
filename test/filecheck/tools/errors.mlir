// RUN: not cleave-opt %s --split-input-file 2>&1 | filecheck %s
// RUN: cleave-opt %s --split-input-file --verify-diagnostics | filecheck %s --check-prefix=ALL
// RUN: not cleave-opt %s -p drop-shift 2>&1 | filecheck %s --check-prefix=PASS

// The first error ends the run, with its line in the file. Asked for diagnostics, the
// tool goes on. A name is looked at before the file is.

// CHECK:      errors.mlir:15:3: error: 'func.return' op: Expected arguments to have the same
// CHECK-NEXT:   func.return
// CHECK-NEXT:   ^^^^^^^^^^^
// CHECK-NOT:  Traceback
// ALL:        'func.return' op: Expected arguments

func.func @returns_nothing() -> i32 {
  func.return
}

// -----

// ALL:        'func.return' op: Expected arguments
// PASS:       error: there is no pass 'drop-shift'

func.func @returns_too_much(%a: i32) {
  func.return %a : i32
}
