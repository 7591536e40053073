/* Files of arrays, which may be hostile, and files that replace older ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/file/array.h"
#include "runtime/ckr.h"
#include "runtime/support/path.h"
#include "tests/runtime/folder.h"

/* ---- safetensors ---- */

static size_t
st_make(char *buf, const char *header, size_t data)
{
	uint64_t n = strlen(header);

	memcpy(buf, &n, 8);
	memcpy(buf + 8, header, n);
	memset(buf + 8 + n, 0, data);
	return 8 + n + data;
}

/* Status of opening a safetensors file with this header. */
static ckr_status
st_try(const char *header, size_t data, struct err *e)
{
	char buf[4096];
	struct array_file f;
	ckr_status s;

	put_file("t.safetensors", buf, st_make(buf, header, data));
	s = array_open(&f, "t.safetensors", e);
	if (s == CKR_OK)
		array_close(&f);
	return s;
}

#define ENTRY(name, dtype, shape, from, to) "\"" name "\":{\"dtype\":\"" dtype \
	"\",\"shape\":" shape ",\"data_offsets\":[" #from "," #to "]}"

static void
test_st_hostile(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(st_try("{" ENTRY("a", "F32", "[2]", 0, 8) "}", 8, &e),
	                 CKR_OK);
	assert_int_equal(st_try("{}", 0, &e), CKR_OK);
	/* empty ones lie anywhere */
	assert_int_equal(st_try("{" ENTRY("a", "F32", "[2]", 0, 8) ","
	                        ENTRY("b", "F32", "[0]", 4, 4) ","
	                        ENTRY("c", "F32", "[0]", 0, 0) "}", 8, &e),
	                 CKR_OK);
	static const char *const bad[] = {
		"{" ENTRY("a", "F32", "[2]", 0, 8) ","
		ENTRY("a", "F32", "[2]", 0, 8) "}",             /* twice */
		"{" ENTRY("a", "F32", "[2]", 0, 8) ","
		ENTRY("b", "F32", "[0]", 4, 4) ","
		ENTRY("c", "F32", "[1]", 4, 8) "}",             /* shared */
		"{" ENTRY("a", "F32", "[1]", 4, 8) "}",         /* a hole */
		"{" ENTRY("a", "F32", "[1]", 0, 4) "}",         /* more */
		"{}",
		"{" ENTRY("a", "F32", "[3]", 0, 8) "}",         /* shape */
		"{" ENTRY("a", "F32", "[2]", 8, 16) "}",        /* outside */
		"{" ENTRY("a", "F32", "[2]", 8, 0) "}",         /* backwards */
		"{" ENTRY("a", "F32", "[-2]", 0, 8) "}",
		"{" ENTRY("a", "F32", "[2.0]", 0, 8) "}",
		"{" ENTRY("a", "F32", "[4611686018427387904,4]", 0, 0) "}",
		"{" ENTRY("a", "F32", "[99999999999999999999]", 0, 0) "}",
		"{" ENTRY("a", "F32", "[1,1,1,1,1,1,1,1,2]", 0, 8) "}",
		"{" ENTRY("a", "F32", "[2]", 0, 99999999999999999999) "}",
		"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}",
		("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],"
		 "\"data_offsets\":[0,8]}}"),
		"{\"a\":[]}", "{\"a\"", "{", "{\"__metadata__\":{\"a\":1}}",
		"{\"a\\u0000b\":{}}", "[]",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		e.text[0] = '\0';
		assert_int_equal(st_try(bad[i], 8, &e), CKR_EFORMAT);
		assert_non_null(strstr(e.text, "t.safetensors"));
	}
}

static void
test_st_write(void **state)
{
	static const float a[6] = { 1, 2, 3, 4, 5, 6 };
	static const int64_t b = -7;
	struct st_entry entry[] = { { "we\"ird\n", CKR_F32, 2, { 2, 3 } },
	                            { "b", CKR_I64, 0, { 0 } } };
	struct meta meta = { "step", "12" };
	struct st_writer w;
	struct array_file f;
	struct err e;
	double d[6];
	int64_t l;

	(void)state;
	assert_int_equal(st_begin(&w, "w.safetensors", entry, 2, &meta, 1, &e),
	                 CKR_OK);
	/* nothing is there before the end */
	unlink("w.safetensors");
	assert_int_equal(st_write(&w, 1, 0, &b, 8, &e), CKR_OK);
	assert_int_equal(st_write(&w, 0, 0, a, sizeof(a), &e), CKR_OK);
	assert_int_equal(st_write(&w, 0, 20, a, 8, &e), CKR_EARG);
	assert_int_not_equal(access("w.safetensors", F_OK), 0);
	assert_int_equal(st_commit(&w, &e), CKR_OK);
	assert_int_equal(array_open(&f, "w.safetensors", &e), CKR_OK);
	assert_string_equal(array_meta(&f, "step"), "12");
	assert_null(array_meta(&f, "none"));
	assert_non_null(array_find(&f, "we\"ird\n"));
	assert_null(array_find(&f, "we"));
	assert_int_equal(array_find(&f, "we\"ird\n")->at % 64, 0);
	assert_int_equal(array_read(&f, array_find(&f, "we\"ird\n"), 1, 5,
	                            CKR_F64, d, &e), CKR_OK);
	assert_true(d[0] == 2 && d[4] == 6);
	assert_int_equal(array_read(&f, array_find(&f, "we\"ird\n"), 1, 6,
	                            CKR_F64, d, &e), CKR_EARG);
	assert_int_equal(array_read(&f, array_find(&f, "b"), 0, 1, CKR_I64, &l,
	                            &e), CKR_OK);
	assert_int_equal(l, -7);
	array_close(&f);
}

static void
test_atomic(void **state)
{
	struct new_file f;
	struct err e;
	char buf[8] = { 0 };
	FILE *in;

	(void)state;
	put_file("a.txt", "old", 3);
	assert_int_equal(new_file_open(&f, "a.txt", &e), CKR_OK);
	assert_int_equal(file_write(f.fd, "a.txt", "new!", 4, 0, &e), CKR_OK);
	new_file_abort(&f);
	in = fopen("a.txt", "r");
	assert_int_equal(fread(buf, 1, 8, in), 3);
	fclose(in);
	/* through a link: what it points to is replaced, the link stays */
	unlink("link.txt");
	assert_int_equal(symlink("a.txt", "link.txt"), 0);
	assert_int_equal(new_file_open(&f, "link.txt", &e), CKR_OK);
	assert_int_equal(file_write(f.fd, "a.txt", "new!", 4, 0, &e), CKR_OK);
	assert_int_equal(new_file_commit(&f, &e), CKR_OK);
	in = fopen("a.txt", "r");
	assert_int_equal(fread(buf, 1, 8, in), 4);
	fclose(in);
	assert_int_equal(readlink("link.txt", buf, 8), 5);
	/* devices and folders are not replaced */
	assert_true(path_same("a.txt", "./link.txt"));
	assert_true(path_same("b.txt", ".//b.txt"));
	assert_false(path_same("b.txt", "no/b.txt"));
	assert_false(path_same("a.txt", "b.txt"));
	assert_false(path_same("c.txt", "b.txt"));
	assert_int_equal(new_file_open(&f, "/dev/null", &e), CKR_EIO);
	assert_int_equal(new_file_open(&f, ".", &e), CKR_EIO);
	assert_int_equal(new_file_open(&f, "no/such/folder", &e), CKR_EIO);
}

/* ---- npy ---- */

static size_t
npy_make(char *buf, const char *dict, size_t data)
{
	size_t n = strlen(dict);

	memcpy(buf, "\x93NUMPY\1\0", 8);
	buf[8] = (char)(n & 255);
	buf[9] = (char)(n >> 8);
	memcpy(buf + 10, dict, n);
	for (size_t i = 0; i < data; i++)
		buf[10 + n + i] = (char)(i % 4 == 0 ? i / 4 : 0);
	return 10 + n + data;
}

static ckr_status
npy_try(const char *dict, size_t data, struct err *e)
{
	char buf[1024];
	struct array_file f;
	ckr_status s;

	put_file("t.npy", buf, npy_make(buf, dict, data));
	s = array_open(&f, "t.npy", e);
	if (s == CKR_OK)
		array_close(&f);
	return s;
}

#define DICT(descr, order, shape) "{'descr': '" descr "', 'fortran_order': " \
	order ", 'shape': " shape ", }      \n"

static void
test_npy(void **state)
{
	struct array_file f;
	struct err e;
	char buf[256];
	int64_t l[3];

	(void)state;
	put_file("t.npy", buf, npy_make(buf, DICT("<i4", "False", "(2, 3)"),
	                                24));
	assert_int_equal(array_open(&f, "t.npy", &e), CKR_OK);
	assert_int_equal(f.v[0].rank, 2);
	assert_int_equal(array_read(&f, &f.v[0], 3, 3, CKR_I64, l, &e), CKR_OK);
	assert_true(l[0] == 3 && l[2] == 5);
	array_close(&f);
	assert_int_equal(npy_try(DICT("<f4", "False", "()"), 4, &e), CKR_OK);
	assert_int_equal(npy_try(DICT("<f4", "False", "(1,)"), 4, &e), CKR_OK);
	assert_int_equal(npy_try(DICT("<f4", "True", "(1,)"), 4, &e), CKR_OK);
	assert_int_equal(npy_try(DICT("<f4", "True", "(1,1)"), 4, &e),
	                 CKR_EUNSUPPORTED);
	assert_int_equal(npy_try(DICT(">f4", "False", "(1,)"), 4, &e),
	                 CKR_EUNSUPPORTED);
	assert_int_equal(npy_try(DICT("<c8", "False", "(1,)"), 8, &e),
	                 CKR_EUNSUPPORTED);
	assert_int_equal(npy_try(DICT("|O", "False", "(1,)"), 8, &e),
	                 CKR_EUNSUPPORTED);
	static const char *const bad[] = {
		DICT("<f4", "False", "(2,)"),           /* too short */
		DICT("<f4", "False", "(-1,)"), DICT("<f4", "Maybe", "(1,)"),
		DICT("<f4", "False", "(1,1,1,1,1,1,1,1,1)"),
		DICT("<f4", "False", "(4611686018427387904,16)"),
		DICT("<f4", "False", "(1"), "{'shape': (1,)}", "{", "",
		"{'descr': '<f4', 'x': 1}",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(npy_try(bad[i], 4, &e), CKR_EFORMAT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_st_hostile),
		cmocka_unit_test(test_st_write),
		cmocka_unit_test(test_atomic),
		cmocka_unit_test(test_npy),
	};
	static const char *const left[] = {
		"t.safetensors", "w.safetensors", "a.txt", "link.txt", "t.npy",
	};

	if (!folder_enter())
		return 1;
	return folder_leave(left, sizeof(left) / sizeof(*left),
	                    cmocka_run_group_tests(tests, NULL, NULL));
}
