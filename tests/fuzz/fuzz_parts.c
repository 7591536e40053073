/* A folder of parts: the header of one of two parts, and complete.json. */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/file/parts_folder.h"

enum { HEADER, INDEX, VARIANTS };

const unsigned fuzz_variants = VARIANTS;
const bool fuzz_protobuf = false;

enum { FIRST = 16, SECOND = 12 };       /* bytes of data of each part */

static struct {
	char folder[32], index[64], part[2][64];
} at;

static void
remove_folder(void)
{
	unlink(at.index);
	unlink(at.part[0]);
	unlink(at.part[1]);
	rmdir(at.folder);
}

static void
write_part(const char *path, const void *head, size_t n, size_t ndata)
{
	unsigned char length[8] = { n & 255, n >> 8 & 255, n >> 16 & 255 };
	static const char data[FIRST];
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(length, 1, 8, f) != 8 || fwrite(head, 1, n, f) != n
	    || fwrite(data, 1, ndata, f) != ndata || fclose(f))
		fuzz_fail("%s: %m", path);
}

/* Part 0 has the first row of w, and all of b. */
static void
make_folder(void)
{
	static const char head[] =
		"{\"__metadata__\":{\"ckc.cut.w\":\"2,3; 0+3\"},"
		"\"w\":{\"dtype\":\"F32\",\"shape\":[3],"
		"\"data_offsets\":[0,12]},\"b\":{\"dtype\":\"F32\","
		"\"shape\":[1],\"data_offsets\":[12,16]}}";

	strcpy(at.folder, "/tmp/fuzz-XXXXXX");
	if (!mkdtemp(at.folder))
		fuzz_fail("mkdtemp: %m");
	atexit(remove_folder);
	snprintf(at.index, sizeof at.index, "%s/complete.json", at.folder);
	for (int i = 0; i < 2; i++)
		snprintf(at.part[i], sizeof at.part[i],
		         "%s/0000%d-1.safetensors", at.folder, i);
	write_part(at.part[0], head, sizeof head - 1, FIRST);
}

/* The index of the parts as they are; not flushed, as parts_complete does. */
static void
write_index(void)
{
	FILE *f = fopen(at.index, "wb");

	if (!f)
		fuzz_fail("%s: %m", at.index);
	fputs("{\"format\":\"ckc parts 1\",\"save\":1,\"parts\":[", f);
	for (int i = 0; i < 2; i++) {
		int fd = open(at.part[i], O_RDONLY);
		struct part_mark m;
		struct err e;

		if (parts_hash(fd, at.part[i], true, &m, NULL, &e) != CKR_OK)
			fuzz_fail("%s", e.text);
		close(fd);
		fprintf(f, "%s{\"bytes\":%llu,\"header\":\"%016llx\","
		        "\"data\":\"%016llx\"}", i ? "," : "",
		        (unsigned long long)m.bytes,
		        (unsigned long long)m.header,
		        (unsigned long long)m.data);
	}
	fputs("]}", f);
	if (fclose(f))
		fuzz_fail("%s: %m", at.index);
}

/* What can be opened is read to its ends. */
static void
read_folder(bool verified)
{
	struct array_file f;
	struct err e = { 0 };
	ckr_status s = parts_open(&f, at.folder, &e);
	char out[FIRST + SECOND];

	fuzz_judge_status(s, &e);
	if (s != CKR_OK)
		return;
	if (verified && parts_verify(&f, 0, 1, &e) != CKR_OK)
		fuzz_fail("parts as they were indexed: %s", e.text);
	for (size_t i = 0; i < f.n; i++) {
		if (f.v[i].nbytes > sizeof out)
			fuzz_fail("more elements than the parts have");
		if (parts_read(&f, &f.v[i], 0, f.v[i].nelem, out, &e)
		    != CKR_OK)
			fuzz_fail("a part that is not read: %s", e.text);
	}
	array_close(&f);
}

void
fuzz_try(const uint8_t *data, size_t n, unsigned variant)
{
	static const char empty[] = "{}";
	FILE *f;

	if (!at.folder[0])
		make_folder();
	write_part(at.part[1], variant == HEADER ? (const char *)data : empty,
	           variant == HEADER ? n : sizeof empty - 1, SECOND);
	write_index();
	if (variant == INDEX) {
		f = fopen(at.index, "wb");
		if (!f || fwrite(data, 1, n, f) != n || fclose(f))
			fuzz_fail("%s: %m", at.index);
	}
	read_folder(variant == HEADER);
}
