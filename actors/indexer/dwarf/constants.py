"""Numbers from DWARF 5 §7.5 (tags, attributes, encodings, forms) that this reader uses."""

from __future__ import annotations

from typing import Final

# Tags
ARRAY_TYPE: Final = 0x01
CLASS_TYPE: Final = 0x02
ENUMERATION_TYPE: Final = 0x04
FORMAL_PARAMETER: Final = 0x05
LABEL: Final = 0x0A
LEXICAL_BLOCK: Final = 0x0B
MEMBER: Final = 0x0D
POINTER_TYPE: Final = 0x0F
REFERENCE_TYPE: Final = 0x10
COMPILE_UNIT: Final = 0x11
STRUCTURE_TYPE: Final = 0x13
SUBROUTINE_TYPE: Final = 0x15
TYPEDEF: Final = 0x16
UNION_TYPE: Final = 0x17
UNSPECIFIED_PARAMETERS: Final = 0x18
INHERITANCE: Final = 0x1C
INLINED_SUBROUTINE: Final = 0x1D
VARIANT: Final = 0x19
PTR_TO_MEMBER_TYPE: Final = 0x1F
SUBRANGE_TYPE: Final = 0x21
BASE_TYPE: Final = 0x24
CONST_TYPE: Final = 0x26
ENUMERATOR: Final = 0x28
SUBPROGRAM: Final = 0x2E
TEMPLATE_TYPE: Final = 0x2F
TEMPLATE_VALUE: Final = 0x30
VARIANT_PART: Final = 0x33
VARIABLE: Final = 0x34
VOLATILE_TYPE: Final = 0x35
RESTRICT_TYPE: Final = 0x37
NAMESPACE: Final = 0x39
UNSPECIFIED_TYPE: Final = 0x3B
RVALUE_REFERENCE_TYPE: Final = 0x42
ATOMIC_TYPE: Final = 0x47
CALL_SITE: Final = 0x48
IMMUTABLE_TYPE: Final = 0x4B
TYPE_UNIT: Final = 0x41
GNU_TEMPLATE_PARAMETER_PACK: Final = 0x4107
GNU_FORMAL_PARAMETER_PACK: Final = 0x4108
GNU_CALL_SITE: Final = 0x4109

# Attributes
SIBLING: Final = 0x01
LOCATION: Final = 0x02
NAME: Final = 0x03
BYTE_SIZE: Final = 0x0B
BIT_OFFSET: Final = 0x0C
BIT_SIZE: Final = 0x0D
STMT_LIST: Final = 0x10
LOW_PC: Final = 0x11
HIGH_PC: Final = 0x12
LANGUAGE: Final = 0x13
DISCR: Final = 0x15
DISCR_VALUE: Final = 0x16
COMP_DIR: Final = 0x1B
CONST_VALUE: Final = 0x1C
CONTAINING_TYPE: Final = 0x1D
INLINE: Final = 0x20
LOWER_BOUND: Final = 0x22
PRODUCER: Final = 0x25
PROTOTYPED: Final = 0x27
UPPER_BOUND: Final = 0x2F
ABSTRACT_ORIGIN: Final = 0x31
ARTIFICIAL: Final = 0x34
CALLING_CONVENTION: Final = 0x36
COUNT: Final = 0x37
DATA_MEMBER_LOCATION: Final = 0x38
DECL_COLUMN: Final = 0x39
DECL_FILE: Final = 0x3A
DECL_LINE: Final = 0x3B
DECLARATION: Final = 0x3C
DISCR_LIST: Final = 0x3D
ENCODING: Final = 0x3E
EXTERNAL: Final = 0x3F
FRAME_BASE: Final = 0x40
SPECIFICATION: Final = 0x47
TYPE: Final = 0x49
ENTRY_PC: Final = 0x52
VIRTUALITY: Final = 0x4C
RANGES: Final = 0x55
CALL_LINE: Final = 0x59
DATA_BIT_OFFSET: Final = 0x6B
ENUM_CLASS: Final = 0x6D
SIGNATURE: Final = 0x69
LINKAGE_NAME: Final = 0x6E
STR_OFFSETS_BASE: Final = 0x72
ADDR_BASE: Final = 0x73
RNGLISTS_BASE: Final = 0x74
DWO_NAME: Final = 0x76
CALL_ALL_CALLS: Final = 0x7A
ALIGNMENT: Final = 0x88
EXPORT_SYMBOLS: Final = 0x89
DELETED: Final = 0x8A
DEFAULTED: Final = 0x8B
LOCLISTS_BASE: Final = 0x8C
MIPS_LINKAGE_NAME: Final = 0x2007
GNU_VECTOR: Final = 0x2107
GNU_DWO_NAME: Final = 0x2130
GNU_ALL_CALL_SITES: Final = 0x2117
GNU_ADDR_BASE: Final = 0x2133

# Base type encodings
ATE_ADDRESS: Final = 0x01
ATE_BOOLEAN: Final = 0x02
ATE_COMPLEX: Final = 0x03
ATE_FLOAT: Final = 0x04
ATE_SIGNED: Final = 0x05
ATE_SIGNED_CHAR: Final = 0x06
ATE_UNSIGNED: Final = 0x07
ATE_UNSIGNED_CHAR: Final = 0x08
ATE_DECIMAL_FLOAT: Final = 0x0F
ATE_UTF: Final = 0x10

# DW_AT_calling_convention
CC_NORMAL: Final = 1
CC_PROGRAM: Final = 2
CC_NOCALL: Final = 3
CC_PASS_BY_REFERENCE: Final = 4
CC_PASS_BY_VALUE: Final = 5

# Forms
F_ADDR: Final = 0x01
F_STRING: Final = 0x08
F_STRP: Final = 0x0E
F_REF_ADDR: Final = 0x10
F_INDIRECT: Final = 0x16
F_SEC_OFFSET: Final = 0x17
F_EXPRLOC: Final = 0x18
F_FLAG_PRESENT: Final = 0x19
F_STRX: Final = 0x1A
F_ADDRX: Final = 0x1B
F_STRP_SUP: Final = 0x1D
F_LINE_STRP: Final = 0x1F
F_REF_SIG8: Final = 0x20
F_IMPLICIT_CONST: Final = 0x21
F_LOCLISTX: Final = 0x22
F_RNGLISTX: Final = 0x23
F_GNU_REF_ALT: Final = 0x1F20
F_GNU_STRP_ALT: Final = 0x1F21

# How many bytes a form takes, where that is fixed; section offsets (4 or 8) and the rest are not here
FIXED: Final = {
    0x01: 8, 0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x19: 0, 0x1C: 4, 0x1E: 16, 0x20: 8, 0x21: 0,
    0x24: 8, 0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4, 0x29: 1, 0x2A: 2, 0x2B: 3, 0x2C: 4,
}  # fmt: skip
SECTION_OFFSETS: Final = frozenset({0x0E, 0x10, 0x17, 0x1D, 0x1F, 0x1F20, 0x1F21})
ULEBS: Final = frozenset({0x0F, 0x15, 0x1A, 0x1B, 0x22, 0x23, 0x1F01, 0x1F02})
BLOCKS: Final = {0x0A: 1, 0x03: 2, 0x04: 4}  # length field's bytes; 0x09 and 0x18 have a ULEB length
UNIT_REFERENCES: Final = frozenset({0x11, 0x12, 0x13, 0x14, 0x15})
STRING_INDEXES: Final = frozenset({0x1A, 0x25, 0x26, 0x27, 0x28, 0x1F02})
ADDRESS_INDEXES: Final = frozenset({0x1B, 0x29, 0x2A, 0x2B, 0x2C, 0x1F01})
CONSTANTS: Final = frozenset({0x05, 0x06, 0x07, 0x0B, 0x0D, 0x0F, 0x21, 0x0C, 0x19, 0x17})
