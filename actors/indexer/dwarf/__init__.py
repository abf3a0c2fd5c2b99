"""A reader of DWARF 4 and 5 for what function plans need: units, subprograms, parameters, types, locations at entry.

It reads single units on demand, skips entries by precomputed sizes, and reads an attribute only when asked: a hundred functions of a
60 MB file in well under a second. pyelftools, which parses all it passes, is the cross-check in the tests.
"""
