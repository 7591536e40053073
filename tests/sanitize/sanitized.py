"""Which programs are built with AddressSanitizer."""


def sanitized(program, what):
    """Whether program is; if so, says what cannot be tested."""
    with open(program, "rb") as f:
        found = b"__asan_init" in f.read()
    if found:
        print(f"under AddressSanitizer: {what}", flush=True)
    return found
