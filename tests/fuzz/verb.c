#include "tests/fuzz/verb.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

static char folder[64];

static void
remove_folder(void)
{
	rmdir(folder);
}

const char *
verb_output(void)
{
	static char path[80];

	if (*path)
		return path;
	strcpy(folder, "/tmp/ckc-fuzz-XXXXXX");
	if (!mkdtemp(folder))
		fuzz_fail("%s: %m", folder);
	atexit(remove_folder);
	snprintf(path, sizeof path, "%s/out", folder);
	return path;
}

/* How many files there are; they are removed. */
static int
sweep(void)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) {
			unlinkat(dirfd(d), e->d_name, 0);
			n++;
		}
	if (d)
		closedir(d);
	return n;
}

void
verb_try(bool (*verb)(const struct cli *, Arena *, Diag *),
         const struct cli *c)
{
	Arena *arena = arena_new();
	Diag *diag = diag_new("ckc", fuzz_messages());
	bool ok = verb(c, arena, diag), there;

	fuzz_judge(ok, diag_errors(diag));
	there = access(verb_output(), F_OK) == 0;
	if (ok != there || sweep() != there)
		fuzz_fail("%s, but files were left", ok ? "success"
		          : "failure");
	diag_free(diag);
	arena_free(arena);
}
