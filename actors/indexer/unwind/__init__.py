"""Saved registers and stack bytes → return addresses, by call frame information (DWARF 5 §6.4; System V psABI §3.7)."""
