"""How runs are computed: the compiled loop, one run, many runs, on one machine or on many."""
