/* An index of shards, and the configuration of adapters: files that name or
 * describe others beside them. */
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/file/array.h"
#include "runtime/file/peft.h"

enum { INDEX, ADAPTERS, VARIANTS };

const unsigned fuzz_variants = VARIANTS;
const bool fuzz_protobuf = false;

/* A folder with a shard and adapters, whose index or configuration is the
 * input. */
static struct {
	char folder[32], shard[48], index[64], config[64], adapters[64];
} at;

static void
remove_folder(void)
{
	unlink(at.shard);
	unlink(at.index);
	unlink(at.config);
	rmdir(at.folder);
}

static void
write_file(const char *path, const void *data, size_t n)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(data, 1, n, f) != n || fclose(f))
		fuzz_fail("%s: %m", path);
}

static void
make_folder(void)
{
	static const char head[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],"
		"\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\","
		"\"shape\":[1],\"data_offsets\":[8,12]}}";
	unsigned char file[8 + sizeof head - 1 + 12] = { sizeof head - 1 };

	strcpy(at.folder, "/tmp/fuzz-XXXXXX");
	if (!mkdtemp(at.folder))
		fuzz_fail("mkdtemp: %m");
	atexit(remove_folder);
	snprintf(at.shard, sizeof at.shard, "%s/a", at.folder);
	snprintf(at.index, sizeof at.index, "%s/index.json", at.folder);
	snprintf(at.config, sizeof at.config, "%s/adapter_config.json",
	         at.folder);
	snprintf(at.adapters, sizeof at.adapters, "%s/adapters.safetensors",
	         at.folder);
	memcpy(file + 8, head, sizeof head - 1);
	write_file(at.shard, file, sizeof file);
}

/* Every array that the index has is that of its shard. */
static void
read_index(const uint8_t *data, size_t n)
{
	struct array_file f;
	struct err e = { 0 };
	ckr_status s;

	write_file(at.index, data, n);
	s = array_open(&f, at.index, &e);
	fuzz_judge_status(s, &e);
	for (size_t i = 0; s == CKR_OK && i < f.n; i++) {
		float out[2];

		if (f.v[i].nelem > 2)
			fuzz_fail("an array that no shard has");
		if (array_read(&f, &f.v[i], 0, f.v[i].nelem, CKR_F32, out, &e)
		    != CKR_OK)
			fuzz_fail("a shard that is not read: %s", e.text);
	}
	if (s == CKR_OK)
		array_close(&f);
}

static void
read_scales(const uint8_t *data, size_t n)
{
	static const char *const weight[] = {
		"encoder.layers.0.q.weight", "encoder.layers.1.v.weight", "w",
	};
	double scale[3] = { 1, 1, 1 };
	struct err e = { 0 };
	bool there;
	ckr_status s;

	write_file(at.config, data, n);
	s = peft_scales(at.adapters, weight, 3, scale, &there, &e);
	fuzz_judge_status(s, &e);
	for (int i = 0; s == CKR_OK && i < 3; i++)
		if (!isfinite(scale[i]))
			fuzz_fail("a scale that is not finite");
}

void
fuzz_try(const uint8_t *data, size_t n, unsigned variant)
{
	if (!at.folder[0])
		make_folder();
	(variant == INDEX ? read_index : read_scales)(data, n);
}
