"""
The numerical gate: candidates that are equal in algebra and useless in floating point
do not win (DESIGN section 7).

What it asks of finite inputs stands in `rule`. NaNs and infinities among the inputs
spread as in eager mode, to all results that depend on them, with two differences, both
of graphs with exponentials (`stabilize-exp`). A row whose exponents are all -inf counts
as masked and gives 0, with -inf for its log-sum-exp, where eager mode divides 0 by 0.
And eager mode multiplies a hidden key's weight of 0 by its value, so that a NaN there
reaches every row; a kernel does not look at tiles that are hidden as a whole.
"""
