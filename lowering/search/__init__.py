"""The search for the fastest kernel of a graph: graphs, schedules, measurement."""
