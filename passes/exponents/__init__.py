"""
Exponentials that do not overflow: which exponents may be shifted, and what by.

| module | holds |
|---|---|
| `factors`, `forms` | exact linear combinations of shifts |
| `degree`, `degrees` | the domain of degrees: what becomes of a value under a shift |
| `propagation` | degrees of the values of a graph |
| `equations`, `analysis` | the shifts that change no result, as a linear system |
| `maxima` | exponents that are shifted already |
| `shifting`, `held`, `builder` | a graph with shifted exponents |
| `references` | what schedules are told of references |
| `invariance` | values that could be anything |
| `wording` | all this in words |
"""
