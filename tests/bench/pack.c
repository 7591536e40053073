/* Time and quality of the packer, one row per file of buffers.
 *
 *   bench_pack FILE.csv...     columns id,lower,upper,size
 *
 * Packs as the planner does, and prints buffers, live bound, height, waste in
 * per cent, whether it is proven optimal, and milliseconds of processor time.
 */
#include "passes/remat_model/remat_model.h"
#include "passes/place/place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static bool
read_buffers(const char *path, Arena *a, struct buffer **b, size_t *n)
{
	FILE *f = fopen(path, "r");
	char line[256];
	size_t cap = 0;

	*b = NULL;
	for (*n = 0; f && fgets(line, sizeof line, f);) {
		struct buffer x = { 0 };

		if (sscanf(line, "%*[^,],%" SCNd64 ",%" SCNd64 ",%" SCNd64,
		           &x.lower, &x.upper, &x.size) != 3)
			continue;
		*b = arena_grow(a, *b, *n, &cap, *n + 1, sizeof **b);
		(*b)[(*n)++] = x;
	}
	return f && fclose(f) == 0;
}

static double
milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

int
main(int argc, char **argv)
{
	int status = 0;

	for (int i = 1; i < argc; i++) {
		Arena *a = arena_new();
		struct pack_result r;
		struct buffer *b;
		size_t n;
		double ms;

		if (!read_buffers(argv[i], a, &b, &n)) {
			fprintf(stderr, "cannot read %s\n", argv[i]);
			status = 1;
			arena_free(a);
			continue;
		}
		ms = milliseconds();
		r = pack_buffers(b, n, PACK_WORK, a);
		ms = milliseconds() - ms;
		printf("%s %zu %" PRId64 " %" PRId64 " %.4f %s %.1f\n",
		       argv[i], n, r.bound, r.height, r.bound > 0
		       ? 100.0 * (double)(r.height - r.bound) / (double)r.bound
		       : 0, r.optimal ? "optimal" : "-", ms);
		arena_free(a);
	}
	return status;
}
