"""Two sessions' traced calls compared, thread by thread: where they first do not do the same (view divergence of debug_query)."""
