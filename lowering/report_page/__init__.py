"""The page on which a compilation is reported, with its pictures."""
