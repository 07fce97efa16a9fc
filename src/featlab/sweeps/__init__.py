"""Many experiments: axes, keys, a store, sweeps, comparisons, boundaries and contours."""
