"""
The numerical gate: candidates that are equal in algebra and useless in floating point
do not win (DESIGN section 7).
"""
