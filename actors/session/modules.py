"""Which ELF files a target has mapped: strobe/modules.py, which the stuck-detector reads too."""

from strobe.modules import RECORDER, SYSTEM_FOLDERS, Mapped, is_own, mapped_modules, maps_text, module_at, parse_mapped, parse_maps, placed

__all__ = ["RECORDER", "SYSTEM_FOLDERS", "Mapped", "is_own", "mapped_modules", "maps_text", "module_at", "parse_mapped", "parse_maps", "placed"]
