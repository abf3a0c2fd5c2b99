"""`strobe demo`: a real bug in a small C program, found through a real MCP session."""
