/* A file's first bytes say its format.  Those of .safetensors are the length of
 * a header, so that they may be those of any other format. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/rng.h"
#include "runtime/file/format.h"
#include "runtime/image/image.h"

/* Little-endian lengths below 4 GiB that other formats begin with: pickles, zip
 * archives, PGM, PPM, JPEG, the headers of tokens, an index. */
static const uint32_t alike[] = {
	0x0280, 0x0380, 0x0480, 0x0580, 0x10280, 0x020280, 0x04034b50,
	0x06054b50, 0x3550, 0x3650, 0x0ffd8ff, 0x6ffd8ff, 20240520, 20240801,
	0x7b, 0x227b, 0x0a7b, 0x4e93, 0x554e93, 0x8b1f, 0x5089, 0x4d42,
};

enum { ALIKE = sizeof(alike) / sizeof(*alike), WHOLE = 1 << 20 };

/* ---- first bytes alone ---- */

static ReadHeader *
reader_of(const unsigned char *head)
{
	const struct array_format *k = format_find(head);

	return k ? k->read : NULL;
}

static void
expect_length(uint64_t n)
{
	unsigned char head[ST_HEAD_BEGINS];

	st_head_length(head, n);
	head[8] = '{';
	assert_true(st_head_size(head) == n);
	assert_ptr_equal(reader_of(head), safetensors_read_header);
}

static void
test_lengths(void **state)
{
	const uint32_t key[2] = { 1, 2 };
	uint32_t counter[4] = { 0 }, x[4];

	(void)state;
	for (uint64_t n = 2; n <= 1 << 21; n++)
		expect_length(n);
	for (int i = 0; i < ALIKE; i++)
		expect_length(alike[i]);
	for (counter[0] = 0; counter[0] < 100000; counter[0]++) {
		rng_philox(key, counter, x);
		expect_length(x[0] < 2 ? 2 : x[0]);
	}
}

/* What follows the first bytes of another format does not change it. */
static void
test_others(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		ReadHeader *read;       /* NULL: not told by name */
	} other[] = {
		{ "\x93NUMPY", 6, npy_read_header },
		{ "PK\3\4\x14", 5, NULL }, { "PK\5\6\0\0\0\0\0", 9, NULL },
		{ "\x88\xd8\x34\x01\x01\0\0\0", 8, tokens_read_header },
		{ "\xa1\xd9\x34\x01\x07\0\0\0", 8, tokens_read_header },
		{ "\x80\2\x8a\nl\xfc\x9c", 7, pickle_refuse },
		{ "\x80\3}q\0X\4", 7, pickle_refuse },
		{ "\x80\4\x95\1\0\0\0\0\0", 9, pickle_refuse },
		{ "\x80\5\x95\xff\xff\0\0\0\0", 9, pickle_refuse },
		{ "{\"meta\":", 8, format_refuse_index },
		{ "{\n\"a\":{", 7, format_refuse_index },
	};
	const uint32_t key[2] = { 3, 4 };
	uint32_t counter[4] = { 0 }, x[4];

	(void)state;
	for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++) {
		unsigned char head[ST_HEAD_BEGINS] = { 0 };
		ReadHeader *read;

		memcpy(head, other[i].bytes, other[i].n);
		read = reader_of(head);
		assert_true(read && (!other[i].read || read == other[i].read));
		for (counter[0] = 0; counter[0] < 5000; counter[0]++) {
			rng_philox(key, counter, x);
			memcpy(head, x, sizeof(head));
			memcpy(head, other[i].bytes, other[i].n);
			head[8] = other[i].n > 8 || x[3] % 2 ? head[8] : '{';
			assert_ptr_equal(reader_of(head), read);
		}
	}
}

/* ---- whole files ---- */

static const char *
file_with(const void *head, size_t n, const void *more, size_t nmore)
{
	static char path[32];
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("formats", 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, head, n, 0), n);
	assert_int_equal(pwrite(fd, more, nmore, (off_t)n), nmore);
	return path;
}

/* A tensor behind a header of n bytes. */
static const char *
tensor_behind(size_t n)
{
	static const char entry[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],"
		"\"data_offsets\":[0,8]}}";
	static char text[WHOLE + 8];
	const float w[2] = { 1.5f, -2 };
	unsigned char length[8];

	assert_true(n >= sizeof(entry) - 1 && n <= WHOLE);
	memset(text, ' ', n);
	memcpy(text, entry, sizeof(entry) - 1);
	memcpy(text + n, w, 8);
	st_head_length(length, n);
	return file_with(length, 8, text, n + 8);
}

static void
expect_file(size_t n)
{
	const char *path = tensor_behind(n);
	struct image image;
	struct array_file f;
	struct err e = { 0 };
	float w[2];

	assert_int_equal(array_open(&f, path, &e), CKR_OK);
	assert_true(f.n == 1 && !strcmp(f.v[0].name, "w"));
	assert_int_equal(array_read(&f, f.v, 0, 2, CKR_F32, w, &e), CKR_OK);
	assert_true(w[0] == 1.5f && w[1] == -2);
	array_close(&f);
	assert_int_equal(array_open_raw(&f, path, CKR_U8, &e), CKR_EFORMAT);
	assert_int_equal(image_probe(&image, path, &e), CKR_EFORMAT);
	assert_non_null(strstr(e.text, "expected a PNG or JPEG image"));
}

static void
test_files(void **state)
{
	(void)state;
	for (size_t n = 64; n < 2048; n++)
		expect_file(n);
	for (size_t i = 0; i < ALIKE; i++)
		if (alike[i] >= 64 && alike[i] <= WHOLE)
			expect_file(alike[i]);
}

/* One that is cut off is told as such, not as another format. */
static void
test_cut(void **state)
{
	unsigned char head[ST_HEAD_BEGINS];
	struct array_file f;
	struct err e;

	(void)state;
	for (size_t i = 0; i < ALIKE; i++) {
		st_head_length(head, alike[i]);
		head[8] = '{';
		e.text[0] = '\0';
		assert_int_equal(array_open(&f, file_with(head, 9, "\"", 1),
		                            &e), CKR_EFORMAT);
		assert_non_null(strstr(e.text, "the safetensors header has"));
	}
}

/* Bare integers may be any that do not make a whole header. */
static void
test_bare(void **state)
{
	static const char *const head[] = { "\x80\2\0\0", "{\"a\":1",
		"\xff\xd8\xff\0", "P5\n8" };
	struct array_file f;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++) {
		assert_int_equal(array_open_raw(&f, file_with(head[i], 4,
			"\0\0\0\0{\0\0\0", 8), CKR_U16, &e), CKR_OK);
		assert_true(f.n == 1 && f.v[0].nelem == 6);
		array_close(&f);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths), cmocka_unit_test(test_others),
		cmocka_unit_test(test_files), cmocka_unit_test(test_cut),
		cmocka_unit_test(test_bare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
