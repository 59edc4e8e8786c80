"""Emission of TileLang from planned itGraphs (paper section 6.2)."""
