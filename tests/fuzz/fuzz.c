/* What all targets share, and the entry points of libFuzzer. */
#include "tests/fuzz/fuzz.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
	int fd;                         /* of the file */
	char path[64];
	FILE *messages, *null;
	char *said;
	size_t nsaid;
} shared = { .fd = -1 };

_Noreturn void
fuzz_fail(const char *fmt, ...)
{
	va_list ap;

	fputs("fuzz: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

const char *
fuzz_file(const uint8_t *data, size_t n)
{
	if (shared.fd < 0) {
		shared.fd = memfd_create("fuzz", 0);
		if (shared.fd < 0)
			fuzz_fail("memfd_create: %m");
		snprintf(shared.path, sizeof shared.path, "/proc/self/fd/%d",
		         shared.fd);
	}
	if (ftruncate(shared.fd, 0)
	    || pwrite(shared.fd, data, n, 0) != (ssize_t)n)
		fuzz_fail("writing the input: %m");
	return shared.path;
}

FILE *
fuzz_messages(void)
{
	if (!shared.messages)
		shared.messages = open_memstream(&shared.said, &shared.nsaid);
	if (!shared.messages)
		fuzz_fail("open_memstream: %m");
	return shared.messages;
}

const char *
fuzz_said(void)
{
	FILE *f = fuzz_messages();

	fputc(0, f);
	fflush(f);
	rewind(f);
	return shared.said;
}

FILE *
fuzz_null(void)
{
	if (!shared.null)
		shared.null = fopen("/dev/null", "w");
	if (!shared.null)
		fuzz_fail("/dev/null: %m");
	return shared.null;
}

/* "ckc: FILE: internal: ..."; what files hold stands further behind. */
static bool
is_internal(const char *line)
{
	const char *s = strncmp(line, "ckc: ", 5) ? line : line + 5;
	size_t n = strcspn(s, " ");

	if (n && s[n - 1] == ':' && strncmp(s, "internal:", 9) != 0)
		s += n + (s[n] == ' ');
	return strncmp(s, "internal:", 9) == 0;
}

void
fuzz_judge(bool ok, int errors)
{
	const char *said = fuzz_said();

	if (ok && errors)
		fuzz_fail("success with an error: %s", said);
	if (!ok && !errors)
		fuzz_fail("failure without an error: %s", said);
	if (errors && !*said)
		fuzz_fail("an error without a message");
	for (const char *s = said; *s; s += strcspn(s, "\n"), s += *s != 0)
		if (is_internal(s))
			fuzz_fail("%s", said);
	for (const char *s = said; *s; s++)
		if ((unsigned char)*s < ' ' && *s != '\n')
			fuzz_fail("a control character in a message");
}

void
fuzz_judge_status(ckr_status s, const struct err *e)
{
	if (s != CKR_OK && !*e->text)
		fuzz_fail("status %d without a message", (int)s);
	for (const char *c = e->text; s != CKR_OK && *c; c++)
		if ((unsigned char)*c < ' ' && strncmp(c, "\npython3 -c ", 12))
			fuzz_fail("a control character in a message: %s",
			          e->text);
}

/* ---- libFuzzer ---- */

size_t LLVMFuzzerMutate(uint8_t *, size_t, size_t) __attribute__((weak));
int LLVMFuzzerTestOneInput(const uint8_t *, size_t);
size_t LLVMFuzzerCustomMutator(uint8_t *, size_t, size_t, unsigned);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *, size_t, const uint8_t *,
                                 size_t, uint8_t *, size_t, unsigned);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint32_t h = 2166136261;                /* FNV-1a */

	for (size_t i = 0; i < n; i++)
		h = (h ^ data[i]) * 16777619;
	fuzz_try(data, n, (h >> 16) % fuzz_variants);
	return 0;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t cap, unsigned seed)
{
	struct fuzz_random r = { seed + UINT64_C(0x9e3779b97f4a7c15) };
	unsigned times = 1 + fuzz_draw(&r, 3);

	if (!fuzz_protobuf || fuzz_draw(&r, 4) == 0)
		return LLVMFuzzerMutate(data, n, cap);
	for (unsigned i = 0; i < times; i++)
		n = fuzz_mutate_protobuf(&r, data, n, cap);
	return n;
}

size_t
LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b,
                          size_t nb, uint8_t *out, size_t cap, unsigned seed)
{
	struct fuzz_random r = { seed + UINT64_C(0x9e3779b97f4a7c15) };
	size_t n = na < cap ? na : cap;

	memcpy(out, a, n);
	if (fuzz_protobuf)
		return fuzz_cross_protobuf(&r, out, n, cap, b, nb);
	if (n && nb) {
		size_t at = fuzz_draw(&r, (uint32_t)n);
		size_t from = fuzz_draw(&r, (uint32_t)nb);
		size_t len = nb - from < cap - at ? nb - from : cap - at;

		memcpy(out + at, b + from, len);
		n = at + len;
	}
	return n;
}
