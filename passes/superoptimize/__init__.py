"""
The superoptimizer (paper section 4 and appendix A): every graph equal to a given one.

| module | holds |
|---|---|
| `semantics` | the vocabulary in which an operator says what it means |
| `field`, `modular` | fingerprints: arithmetic in Z_p x Z_q |
| `abstract`, `contexts` | abstract classes: what may still become part of the target |
| `signs` | where a quotient, a root or a logarithm is defined |
| `graph` | graphs as plain data, and how they are evaluated |
| `closure` | every distinct value that can be part of the target |
| `extraction` | every graph up to a cost, read off backwards from the target |

None of these knows xDSL; `importing` and `exporting` connect them to `algebra.graph`.
"""
