/* safetensors, .npy and .npz files as the run time reads them. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/file/array.h"

const unsigned fuzz_variants = 2;       /* as it says; as bare numbers */
const bool fuzz_protobuf = false;

static void
read_array(const struct array_file *f, const struct array *a)
{
	enum { SOME = 1000 };
	uint64_t n = a->nelem < SOME ? a->nelem : SOME;
	float out[SOME];
	struct err e = { 0 };

	fuzz_judge_status(array_read(f, a, 0, n, CKR_F32, out, &e), &e);
	fuzz_judge_status(array_read(f, a, a->nelem - n, n, CKR_F32, out, &e), &e);
	if (array_find(f, a->name) == NULL)
		fuzz_fail("an array that its name does not find");
}

void
fuzz_try(const uint8_t *data, size_t n, unsigned variant)
{
	const char *path = fuzz_file(data, n);
	struct array_file f;
	struct err e = { 0 };
	ckr_status s = variant ? array_open_raw(&f, path, CKR_U16, &e)
	                       : array_open(&f, path, &e);

	fuzz_judge_status(s, &e);
	if (s != CKR_OK)
		return;
	for (size_t i = 0; i < f.n; i++) {
		const struct packed *p = f.v[i].packed;
		uint64_t size = p ? p->size : n;

		/* the contents lie in the file */
		if (f.v[i].at > size || f.v[i].nbytes > size - f.v[i].at)
			fuzz_fail("array %zu lies outside the file", i);
		read_array(&f, &f.v[i]);
	}
	for (size_t i = 0; i < f.nmeta; i++)
		if (!array_meta(&f, f.meta[i].key))
			fuzz_fail("metadata that its key does not find");
	array_close(&f);
}
