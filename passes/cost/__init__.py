"""
What a planned tile program costs: closed forms over its tile sizes, and their times.

`extraction` reads the closed forms off a kernel once, with tile sizes as symbols;
`evaluation` turns them into arrays over all tile configurations; a `KernelForm` says
which launches it offers, what they take of the hardware, and how long they run.
"""
