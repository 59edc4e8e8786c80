"""From a graph to a kernel that was checked: what `cleave.compile` does."""
