/* `ckc pack`: live ranges in CSV, and the file of offsets it writes. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/verb.h"

const unsigned fuzz_variants = 2;
const bool fuzz_protobuf = false;

/* The exact search may take seconds, for few rows it does not. */
enum { ROWS_EXACT = 8 };

void
fuzz_try(const uint8_t *data, size_t n, unsigned variant)
{
	struct cli c = { .model = fuzz_file(data, n), .opt.quiet = true,
	                 .capacity = -1 };
	int rows = 0;

	for (size_t i = 0; i < n; i++)
		rows += data[i] == '\n';
	if (variant || rows > ROWS_EXACT)
		c.capacity = INT64_MAX;
	c.out = verb_output();
	verb_try(verb_pack, &c);
}
