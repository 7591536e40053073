/* Damaged copies of real files are imported or refused, with a message, and
 * nothing else happens.  Run it under the sanitizers:
 *
 *     test_mutations ROUNDS SEED MODEL.onnx...
 */
#include "frontend/import.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct random {
	uint64_t s;
};

static uint64_t
next(struct random *r)                  /* xorshift64 */
{
	r->s ^= r->s << 13;
	r->s ^= r->s >> 7;
	r->s ^= r->s << 17;
	return r->s;
}

/* Damage out[0..n), a copy of in; returns its new length. */
static size_t
damage(struct random *r, const unsigned char *in, unsigned char *out,
       size_t n)
{
	static const int most[] = { 1, 8, 64 };
	unsigned kind = (unsigned)(next(r) % 4);
	int count;

	memcpy(out, in, n);
	if (kind == 3)
		return next(r) % n;
	count = 1 + (int)(next(r) % (uint64_t)most[kind]);
	for (int i = 0; i < count; i++) {
		size_t at = next(r) % n, to = next(r) % n;
		size_t len = 1 + next(r) % 16;

		switch (next(r) % 5) {
		case 0:
			out[at] = (unsigned char)next(r);
			break;
		case 1:
			out[at] ^= (unsigned char)(1u << next(r) % 8);
			break;
		case 2:
			out[at] = 0xff;
			break;
		case 3:
			out[at] = 0;
			break;
		default:
			if (at + len <= n && to + len <= n)
				memmove(out + to, in + at, len);
		}
	}
	return n;
}

/* False if the importer failed without saying why. */
static bool
survives(const char *path, int round, FILE *null)
{
	struct import_options opt = { .untie = round & 1,
	                              .json = (round & 2) != 0 };
	Diag *d = diag_new("ckc", null);
	struct onnx_file *file;
	Graph *g = onnx_import(path, &opt, d, &file);
	bool ok = g || diag_errors(d) > 0;

	graph_free(g);
	onnx_close(file);
	if (round % 4 == 0)
		onnx_inspect(path, &opt, null, d);
	diag_free(d);
	return ok;
}

static bool
run(const char *model, int rounds, uint64_t seed, FILE *null)
{
	char path[] = "/tmp/ckc-mutation-XXXXXX";
	struct random r = { seed * 0x9e3779b97f4a7c15u + 1 };
	FILE *f = fopen(model, "rb");
	unsigned char *in, *out;
	int fd = mkstemp(path), bad = 0;
	size_t n;

	if (!f || fd < 0) {
		perror(model);
		return false;
	}
	fseek(f, 0, SEEK_END);
	n = (size_t)ftell(f);
	rewind(f);
	in = malloc(n + 1);
	out = malloc(n + 1);
	n = fread(in, 1, n, f);
	fclose(f);
	for (int i = 0; i < rounds && n > 0; i++) {
		size_t len = damage(&r, in, out, n);

		if (ftruncate(fd, 0) || pwrite(fd, out, len, 0) < 0)
			bad++;
		else if (!survives(path, i, null)) {
			printf("%s, seed %ju, round %d: no message\n", model,
			       (uintmax_t)seed, i);
			bad++;
		}
	}
	free(in);
	free(out);
	close(fd);
	unlink(path);
	return bad == 0 && n > 0;
}

int
main(int argc, char **argv)
{
	FILE *null = fopen("/dev/null", "w");
	bool ok = argc > 3 && null;

	for (int i = 3; i < argc && null; i++)
		ok &= run(argv[i], atoi(argv[1]), strtoull(argv[2], NULL, 10),
		          null);
	if (null)
		fclose(null);
	return ok ? 0 : 1;
}
