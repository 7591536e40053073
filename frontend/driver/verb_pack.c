/* ckc pack: offsets for the rows of a CSV file.
 *
 * The first line names id,lower,upper,size; the result has the same rows in
 * the same order and a fifth column, offset.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ir/base/input_file.h"
#include "ir/base/outfile.h"
#include "frontend/driver/outputs.h"
#include "frontend/driver/stop.h"
#include "frontend/driver/verbs.h"
#include "passes/place/pack.h"

enum { FILE_MAX_BYTES = 256 << 20 };

/* Most elementary steps of the exact search: some seconds. */
#define PACK_VERB_WORK INT64_C(6000000000)

struct buffer_list {
	struct buffer *b;
	const char **id;
	size_t n;
};

/* The field up to a comma or the end of the line; moves *s behind it. */
static char *
field(char **s)
{
	char *begin = *s, *comma = strchr(begin, ',');

	*s = comma ? comma + 1 : begin + strlen(begin);
	if (comma)
		*comma = 0;
	return begin;
}

static bool
parse_int64(const char *s, int64_t *x)
{
	char *end;

	errno = 0;
	*x = strtoll(s, &end, 10);
	return end != s && !*end && !errno && (*s == '-'
		|| (*s >= '0' && *s <= '9'));
}

static bool
read_buffer_row(char *line, size_t number_of_line, struct buffer_list *r,
                Diag *diag)
{
	struct buffer *b = &r->b[r->n];
	int commas = 0;

	for (const char *c = line; *c; c++)
		commas += *c == ',';
	if (commas != 3)
		return diag_error(diag, "line %zu: expected 4 columns, found "
		                  "%d", number_of_line, commas + 1);
	r->id[r->n] = field(&line);
	if (!parse_int64(field(&line), &b->lower)
	    || !parse_int64(field(&line), &b->upper)
	    || !parse_int64(field(&line), &b->size))
		return diag_error(diag, "line %zu: expected 64-bit integers",
		                  number_of_line);
	if (b->lower > b->upper || b->size < 0)
		return diag_error(diag, "line %zu: expected lower <= upper "
		                  "and size >= 0", number_of_line);
	r->n++;
	return true;
}

static int
by_text(const void *p, const void *q)
{
	return strcmp(*(const char *const *)p, *(const char *const *)q);
}

static bool
check_rows(const struct buffer_list *r, Arena *arena, Diag *diag)
{
	const char **id = arena_array(arena, r->n + 1, sizeof *id);
	int64_t sum = 0;

	for (size_t i = 0; i < r->n; i++) {
		id[i] = r->id[i];
		if (__builtin_add_overflow(sum, r->b[i].size, &sum)
		    || sum > INT64_MAX / 4)
			return diag_error(diag, "the sizes add up to more "
			                  "than 2^61");
	}
	qsort(id, r->n, sizeof *id, by_text);
	for (size_t i = 1; i < r->n; i++)
		if (!strcmp(id[i - 1], id[i]))
			return diag_error(diag, "id '%s' occurs twice", id[i]);
	return true;
}

static bool
read_buffers(const char *path, struct buffer_list *r, Arena *arena, Diag *diag)
{
	size_t lines = 2, at = 0, n;
	char *text = input_file_read(path, FILE_MAX_BYTES, &n, arena, diag);
	char *state = NULL, *line;

	if (!text)
		return false;
	if (memchr(text, 0, n))
		return diag_error(diag, "not a text file");
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	r->b = arena_array(arena, lines, sizeof *r->b);
	r->id = arena_array(arena, lines, sizeof *r->id);
	for (line = text; line; line = state) {
		n = strcspn(line, "\n");
		state = line[n] ? line + n + 1 : NULL;
		line[n] = 0;
		if (n && line[n - 1] == '\r')
			line[n - 1] = 0;
		at++;
		if (at == 1) {
			if (strcmp(line, "id,lower,upper,size") != 0)
				return diag_error(diag, "the first line must "
					"be 'id,lower,upper,size', found '%s'",
					line);
		} else if (*line && !read_buffer_row(line, at, r, diag)) {
			return false;
		}
	}
	return check_rows(r, arena, diag);
}

static bool
write_buffers(const char *path, const struct buffer_list *r, Diag *diag)
{
	struct outfile o;

	if (!outfile_open(&o, path, diag))
		return false;
	fputs("id,lower,upper,size,offset\n", o.f);
	for (size_t i = 0; i < r->n; i++)
		fprintf(o.f, "%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
		        "\n", r->id[i], r->b[i].lower, r->b[i].upper,
		        r->b[i].size, r->b[i].offset);
	return outfile_close(&o, true);
}

bool
verb_pack(const struct cli *c, Arena *arena, Diag *diag)
{
	struct watch watch = { .stop = stop_on_signals() };
	struct pack_limit limit = { .work = PACK_VERB_WORK,
		.enough = c->capacity, .stop = &watch };
	struct pack_result got;
	struct buffer_list r = { 0 };

	diag_file(diag, c->model);
	if (!outputs_check_report(c->out, c->model, diag)
	    || !read_buffers(c->model, &r, arena, diag))
		return false;
	got = pack_within(r.b, r.n, &limit, arena);
	if (watch_off(&watch))
		return diag_error(diag, "interrupted");
	if (c->capacity >= 0 && got.height > c->capacity)
		return diag_error(diag, "%s: capacity %" PRId64 ", live bound %"
			PRId64 ", least height found %" PRId64,
			got.least > c->capacity ? "no placement exists"
			: "no placement found",
			c->capacity, got.bound, got.height);
	if (!write_buffers(c->out, &r, diag))
		return false;
	if (!c->opt.quiet)
		fprintf(outfile_is_stdout(c->out) ? stderr : stdout,
		        "%zu buffers, height %" PRId64 ", live bound %" PRId64
		       "%s\n", r.n, got.height, got.bound,
		       got.optimal ? ", optimal" : "");
	return true;
}
