/* A folder of its own for the files of a test. */
#ifndef TESTS_RUNTIME_FOLDER_H
#define TESTS_RUNTIME_FOLDER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder_path[] = "/tmp/ckr-test-XXXXXX";

#include "tests/sanitize/sanitized.h"

/* A file in the test's folder. */
static inline void
put_file(const char *path, const void *data, size_t n)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static inline bool
folder_enter(void)
{
	return mkdtemp(folder_path) && !chdir(folder_path);
}

/* Remove it and the files that may be in it; the number of tests that failed,
 * 1 if something else was left behind. */
static inline int
folder_leave(const char *const *file, size_t n, int failed)
{
	for (size_t i = 0; i < n; i++)
		unlink(file[i]);
	return chdir("/") || rmdir(folder_path) ? 1 : failed;
}

#endif
