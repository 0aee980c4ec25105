"""The machine that the process runs on."""

import os

# Assumed memory of a system that does not report it.
_UNKNOWN = 2**33


def memory_of_machine() -> int:
    """Bytes of memory that the process may take: those of the machine, or its limit."""
    try:
        there_are = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        there_are = _UNKNOWN
    try:
        import resource
    except ImportError:
        return there_are
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return there_are if limit == resource.RLIM_INFINITY else min(there_are, limit)
