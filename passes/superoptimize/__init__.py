"""
The superoptimizer (paper section 4 and appendix A): every graph equal to a given one.

| module | holds |
|---|---|
| `superoptimize` | the pass |
| `search` | the search as a whole |
| `semantics` | the vocabulary in which an operator says what it means |
| `field`, `modular`, `sampling` | fingerprints: arithmetic in Z_p x Z_q, and inputs |
| `abstract`, `contexts` | abstract classes: what may still become part of the target |
| `signs` | where a quotient, a root or a logarithm is defined |
| `graph`, `builder`, `expressions` | graphs as plain data |
| `space`, `moves`, `closure` | every distinct value that can be part of the target |
| `splitting`, `transposition`, `masks` | normal forms of views and masks |
| `derivations`, `verification` | what of it is useful, defined and checked again |
| `extraction` | every graph up to a cost, read off backwards from the target |
| `importing`, `exporting` | from `algebra.graph` and back |
| `equivalence` | the final test of graphs in IR |
| `differences` | what distinguishes two graphs, in words |
"""
