/* CSV files and lists of images, as ckrun reads data. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/data/csv.h"
#include "runtime/data/images.h"

enum { CSV, COLUMNS, LIST, IMAGE };

const unsigned fuzz_variants = 4;
const bool fuzz_protobuf = false;

/* Its ends; all contents have a place. */
static void
read_array(const struct array_file *f, const struct array *a)
{
	enum { SOME = 1000 };
	uint64_t n = a->nelem < SOME ? a->nelem : SOME;
	double out[SOME];
	struct err e = { 0 };

	fuzz_judge_status(array_read(f, a, 0, n, CKR_F64, out, &e), &e);
	fuzz_judge_status(array_read(f, a, a->nelem - n, n, CKR_F64, out, &e), &e);
}

/* A list of the one image that the bytes are. */
static ckr_status
open_image(struct array_file *f, const char *image, struct err *e)
{
	static int fd = -1;
	char path[64], line[128];
	int n = snprintf(line, sizeof(line), "%s 7\n", image);

	if (fd < 0)
		fd = memfd_create("list", 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (pwrite(fd, line, (size_t)n, 0) != n)
		fuzz_fail("%s: cannot write", path);
	return array_open_as(f, path, images_read, NULL, e);
}

void
fuzz_try(const uint8_t *data, size_t n, unsigned variant)
{
	static const char *const text[] = { "x=1-2", "y=3" };
	struct csv_columns columns = { text, variant == COLUMNS ? 2 : 0 };
	const char *path = fuzz_file(data, n);
	struct array_file f;
	struct err e = { 0 };
	ckr_status s = variant == IMAGE ? open_image(&f, path, &e)
	               : array_open_as(&f, path, variant == LIST ? images_read
	                               : csv_read, &columns, &e);

	fuzz_judge_status(s, &e);
	if (s != CKR_OK)
		return;
	for (size_t i = 0; i < f.n; i++)
		read_array(&f, &f.v[i]);
	array_close(&f);
}
