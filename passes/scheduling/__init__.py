"""What the two scheduling passes share: tile options and tmap propagation."""
