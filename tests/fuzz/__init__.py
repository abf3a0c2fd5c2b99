"""Malformed input from every side: MCP lines and arguments, bus frames, ELF and DWARF files. Seeded; a failure names what was sent."""
