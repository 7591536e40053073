/* Run a corpus without libFuzzer:
 *
 *     fuzz_NAME ROUNDS FILE|FOLDER...
 *
 * Every file as it is, in all variants, cut off in up to ROUNDS places, and
 * ROUNDS damaged copies of it, which are the same in every run.  What crashes,
 * hangs or breaks the target's rules ends the process; the input is left as
 * crash-NAME in the working directory.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/sanitize/sanitized.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECONDS = 20, FILE_LIMIT = 4 << 20 };

#define MEMORY_LIMIT ((rlim_t)2 << 30)

void __sanitizer_set_death_callback(void (*)(void)) __attribute__((weak));

static struct {
	const char *name;
	char file[4096];
	unsigned round, variant;
	const uint8_t *data;
	size_t n;
	uint64_t ran;
} now;

static void
leave_input(void)
{
	char text[4500], path[256];
	int n = snprintf(text, sizeof text, "%s: %s, round %u, variant %u: "
	                 "input left as crash-%s\n", now.name, now.file,
	                 now.round, now.variant, now.name), fd;

	if (!now.data)
		return;                 /* a leak, which no input has */
	snprintf(path, sizeof path, "crash-%s", now.name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (write(2, text, (size_t)n) < 0 || fd < 0
	    || write(fd, now.data, now.n) < 0)
		_exit(1);
}

static void
on_signal(int number)
{
	leave_input();
	signal(number, SIG_DFL);
	raise(number);
}

static void
set_limits(void)
{
	static const int caught[] = { SIGABRT, SIGALRM, SIGSEGV, SIGBUS,
	                              SIGFPE, SIGILL };
	struct rlimit r = { MEMORY_LIMIT, MEMORY_LIMIT };

	for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
		if (!SANITIZED || caught[i] != SIGSEGV)
			signal(caught[i], on_signal);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(leave_input);
	/* a sanitizer reserves more address space than there is memory */
	if (!SANITIZED)
		setrlimit(RLIMIT_AS, &r);
}

static void
try_one(const uint8_t *data, size_t n, unsigned variant)
{
	/* in a block of its own size, so that one byte more is a fault */
	uint8_t *exact = malloc(n ? n : 1);

	memcpy(exact, data, n);
	now.data = exact;
	now.n = n;
	now.variant = variant;
	now.ran++;
	alarm(SANITIZED ? 4 * SECONDS : SECONDS);
	fuzz_try(exact, n, variant);
	alarm(0);
	free(exact);
	now.data = NULL;
}

static void
run_bytes(const uint8_t *data, size_t n, unsigned rounds)
{
	size_t cap = n + n / 2 + 4096, cuts = n < rounds ? n : rounds;
	uint8_t *copy = malloc(cap);

	now.round = 0;
	for (unsigned v = 0; v < fuzz_variants; v++)
		try_one(data, n, v);
	for (size_t i = 0; i < cuts; i++)
		try_one(data, i * n / cuts, (unsigned)i % fuzz_variants);
	for (unsigned i = 1; i <= rounds; i++) {
		struct fuzz_random r = { i * UINT64_C(0x9e3779b97f4a7c15) + n };
		unsigned times = 1 + fuzz_draw(&r, 4);
		size_t len = n;

		memcpy(copy, data, n);
		for (unsigned k = 0; k < times; k++)
			len = fuzz_protobuf && fuzz_draw(&r, 4)
				? fuzz_mutate_protobuf(&r, copy, len, cap)
				: fuzz_mutate(&r, copy, len, cap);
		now.round = i;
		try_one(copy, len, fuzz_draw(&r, fuzz_variants));
	}
	free(copy);
}

static bool
run_file(const char *path, unsigned rounds)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(FILE_LIMIT);
	size_t n;

	if (!f) {
		perror(path);
		free(data);
		return false;
	}
	n = fread(data, 1, FILE_LIMIT, f);
	fclose(f);
	snprintf(now.file, sizeof now.file, "%s", path);
	run_bytes(data, n, rounds);
	free(data);
	return true;
}

static bool
run_path(const char *path, unsigned rounds, unsigned *count)
{
	struct dirent **entry;
	struct stat st;
	bool ok = true;
	int n;

	if (stat(path, &st)) {
		perror(path);
		return false;
	}
	if (!S_ISDIR(st.st_mode)) {
		++*count;
		return run_file(path, rounds);
	}
	n = scandir(path, &entry, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char inner[4096];

		snprintf(inner, sizeof inner, "%s/%s", path, entry[i]->d_name);
		if (entry[i]->d_name[0] != '.')
			ok &= run_path(inner, rounds, count);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	return ok && n >= 0;
}

int
main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	unsigned count = 0;
	bool ok = argc > 2;

	if (!ok) {
		fprintf(stderr, "usage: %s ROUNDS FILE|FOLDER...\n", argv[0]);
		return 2;
	}
	now.name = slash ? slash + 1 : argv[0];
	set_limits();
	for (int i = 2; i < argc; i++)
		ok &= run_path(argv[i], (unsigned)atoi(argv[1]), &count);
	printf("%s: %u files, %ju inputs\n", now.name, count,
	       (uintmax_t)now.ran);
	/* a corpus of nothing proves nothing */
	return ok && count ? 0 : 1;
}
